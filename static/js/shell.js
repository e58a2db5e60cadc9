/* What every page runs: theme, keys, dialogs, copy buttons, relative times, failures, the palette.
   Loaded by base.html. Nothing here knows a particular page. */

import { startTheme } from "./ui/theme.js";
import { startKeys } from "./ui/keys.js";
import { startDialogs } from "./ui/dialogs.js";
import { startCopy } from "./ui/copy.js";
import { startTimes } from "./ui/times.js";
import { startFailures } from "./ui/failures.js";
import { startPalette } from "./ui/palette.js";
import { startTrouble } from "./ui/trouble.js";

startTheme();
startKeys();
startDialogs();
startCopy();
startTimes();
startFailures();
startTrouble();
startPalette();
