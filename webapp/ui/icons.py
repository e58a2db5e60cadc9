"""Line icons, drawn on a 16-unit grid, as the inner markup of an `<svg>`.

Inlined by the `icon` template tag: no icon font, no second request, colour from the text.
"""

from __future__ import annotations

ICONS: dict[str, str] = {
    "runs": '<path d="M2 13.5h12M3 11l3.2-4 2.6 2.4L13 4"/><path d="M10.4 4H13v2.6"/>',
    "home": '<path d="M2.4 7.6L8 2.8l5.6 4.8M4 6.6v6.6h8V6.6"/>',
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "data": (
        '<ellipse cx="8" cy="3.8" rx="5.2" ry="2"/>'
        '<path d="M2.8 3.8v8.4c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2V3.8"/>'
        '<path d="M2.8 8c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2"/>'
    ),
    "models": (
        '<path d="M8 1.8l5.6 3.1v6.2L8 14.2l-5.6-3.1V4.9z"/>'
        '<path d="M2.4 4.9L8 8l5.6-3.1M8 8v6.2"/>'
    ),
    "workers": (
        '<rect x="2.2" y="2.6" width="11.6" height="4.4" rx="1"/>'
        '<rect x="2.2" y="9" width="11.6" height="4.4" rx="1"/>'
        '<path d="M4.6 4.8h.01M4.6 11.2h.01M8 4.8h3.4M8 11.2h3.4"/>'
    ),
    "play": '<path d="M4.6 3v10l8-5z" class="solid"/>',
    "pause": '<path d="M5.2 3.2v9.6M10.8 3.2v9.6" class="thick"/>',
    "stop": '<rect x="3.8" y="3.8" width="8.4" height="8.4" rx="1" class="solid"/>',
    "check": '<path d="M3 8.6l3.2 3.2L13 4.6"/>',
    "cross": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "warning": '<path d="M8 2.4L14.4 13.4H1.6z"/><path d="M8 6.4v3.2M8 11.5h.01"/>',
    "info": '<circle cx="8" cy="8" r="6"/><path d="M8 7.4v3.8M8 5h.01"/>',
    "hourglass": (
        '<path d="M4 2.2h8M4 13.8h8M5 2.4c0 3 6 4 6 5.6s-6 2.6-6 5.6"/>'
        '<path d="M11 2.4c0 3-6 4-6 5.6s6 2.6 6 5.6"/>'
    ),
    "pencil": '<path d="M3 13l.7-3L10.8 3l2.2 2.2L6 12.3z"/>',
    "dot": '<circle cx="8" cy="8" r="3" class="solid"/>',
    "sun": (
        '<circle cx="8" cy="8" r="2.8"/>'
        '<path d="M8 1.4v1.8M8 12.8v1.8M1.4 8h1.8M12.8 8h1.8M3.3 3.3l1.3 1.3M11.4 11.4l1.3 1.3'
        'M12.7 3.3l-1.3 1.3M4.6 11.4l-1.3 1.3"/>'
    ),
    "moon": '<path d="M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z"/>',
    "screen": '<rect x="2" y="3" width="12" height="8" rx="1"/><path d="M5.6 13.6h4.8M8 11v2.6"/>',
    "language": (
        '<path d="M2 4h7M5.5 2.4V4M7.8 4C7.2 7 5 9 2.4 10M3.4 6.4c1 1.7 2.4 2.9 4.2 3.4"/>'
        '<path d="M7.6 13.8l3-7 3 7M8.6 11.6h4"/>'
    ),
    "search": '<circle cx="7" cy="7" r="4.2"/><path d="M10.2 10.2l3.4 3.4"/>',
    "glass": (
        '<circle cx="6.8" cy="6.8" r="4.4"/><path d="M10.2 10.2l3.6 3.6"/>'
        '<path d="M4.8 8.2l1.4-2 1.2 1 1.4-2"/>'
    ),
    "copy": (
        '<rect x="5.4" y="5.4" width="8" height="8" rx="1"/>'
        '<path d="M10.6 5.4V3.6a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h1.8"/>'
    ),
    "key": '<circle cx="5" cy="11" r="2.6"/><path d="M6.9 9.1L13.4 2.6M11 5l2 2M9 7l1.4 1.4"/>',
    "trash": '<path d="M3 4.4h10M6.4 4.4V2.8h3.2v1.6M4.2 4.4l.6 9h6.4l.6-9"/>',
    "up": '<path d="M8 13V3.4M4.2 7.2L8 3.4l3.8 3.8"/>',
    "down": '<path d="M8 3v9.6M4.2 8.8L8 12.6l3.8-3.8"/>',
    "left": '<path d="M10 3.4L5.4 8l4.6 4.6"/>',
    "right": '<path d="M6 3.4L10.6 8 6 12.6"/>',
    "download": '<path d="M8 2.6v7.6M4.6 7L8 10.4 11.4 7M2.6 13.4h10.8"/>',
    "upload": '<path d="M8 10.4V2.8M4.6 6L8 2.6 11.4 6M2.6 13.4h10.8"/>',
    "redo": '<path d="M12.8 8a4.8 4.8 0 1 1-1.6-3.6M11.6 1.8v3h-3"/>',
    "branch": (
        '<circle cx="4.4" cy="3.6" r="1.6"/><circle cx="4.4" cy="12.4" r="1.6"/>'
        '<circle cx="11.6" cy="5.6" r="1.6"/>'
        '<path d="M4.4 5.2v5.6M11.6 7.2c0 2.6-7.2 1.6-7.2 3.6"/>'
    ),
    "star": '<path d="M8 2.2l1.8 3.7 4 .6-2.9 2.8.7 4L8 11.4l-3.6 1.9.7-4L2.2 6.5l4-.6z"/>',
    "gauge": '<path d="M2.4 12a5.8 5.8 0 1 1 11.2 0M8 10.6l2.8-3.8"/>',
    "save": '<path d="M3 3h8l2 2v8H3z"/><path d="M5.4 3v3.2h4.4V3M5.4 13V9.4h5.2V13"/>',
    "keyboard": (
        '<rect x="1.6" y="4" width="12.8" height="8" rx="1"/>'
        '<path d="M4 6.6h.01M6.6 6.6h.01M9.4 6.6h.01M12 6.6h.01M4.6 9.4h6.8"/>'
    ),
    "lock": (
        '<rect x="3.4" y="7" width="9.2" height="6.4" rx="1"/>'
        '<path d="M5.4 7V5a2.6 2.6 0 0 1 5.2 0v2"/>'
    ),
    "bolt": '<path d="M9 1.8L3.4 9H8l-1 5.2L12.6 7H8z"/>',
    "out": '<path d="M6.4 2.8H3v10.4h3.4M10 5l3 3-3 3M13 8H6.4"/>',
    "gear": (
        '<circle cx="8" cy="8" r="2.2"/>'
        '<path d="M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6L5 5M11 11l1.4 1.4"/>'
        '<path d="M12.4 3.6L11 5M5 11l-1.4 1.4"/>'
    ),
    "comment": '<path d="M2.4 3h11.2v8H7.4l-3 2.6V11h-2z"/><path d="M5 6h6M5 8.2h4"/>',
    "person": (
        '<circle cx="8" cy="5" r="2.6"/><path d="M2.8 13.6c.4-3 2.4-4.6 5.2-4.6s4.8 1.6 5.2 4.6"/>'
    ),
    "people": (
        '<circle cx="5.8" cy="5.4" r="2.2"/><path d="M1.6 13c.3-2.6 1.9-4 4.2-4s3.9 1.4 4.2 4"/>'
        '<path d="M10 3.4a2.2 2.2 0 0 1 0 4M11.6 9.4c1.7.5 2.6 1.8 2.8 3.6"/>'
    ),
    "file": '<path d="M4 2.2h5.4L12 4.8v9H4z"/><path d="M9.2 2.4V5H12"/>',
}
