/* The API's document is dark where the visitor's theme is. Runs before the page is drawn. */

(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const theme = root.dataset.theme ?? (system.matches ? "dark" : "light");
    root.classList.toggle("dark-mode", theme === "dark");
  };
  system.addEventListener("change", show);
  show();
})();
