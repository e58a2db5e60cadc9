/* Dialogs whose content comes from the server: a link with data-dialog opens its address in #dialog.
   Without scripts the same link leads to a page that asks the same question. */

export function startDialogs() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      await openFrom(link.href);
    } else if (event.target.closest?.("[data-dialog-close]")) {
      event.preventDefault();
      event.target.closest("dialog").close();
    }
  });
}

async function openFrom(address) {
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (!answer.ok || answer.redirected) {
    window.location.assign(address);
    return;
  }
  const dialog = document.getElementById("dialog");
  dialog.innerHTML = await answer.text();
  dialog.showModal();
  dialog.querySelector("[autofocus]")?.focus();
}
