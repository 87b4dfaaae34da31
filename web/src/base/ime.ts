// Enter sends, but never the Enter that confirms an input method's candidate.
//
// Browsers differ in when they report that Enter: most during the composition (isComposing, key code 229), some after
// compositionend, then as an ordinary key press. The latter is told by its time: it follows compositionend at once.
// It is swallowed once, and only if no Enter was already seen inside the composition that just ended.

const AFTER_END_MS = 120; // a person's next key press comes later

/** Calls `send` when Enter is meant to send the content of `box`. With `onlyWithCtrl`, plain Enter starts a line. */
export function onSendKey(box: HTMLTextAreaElement, send: () => void, onlyWithCtrl = false): void {
  let composing = false;
  let enterInside = false;
  let endedAt = -Infinity;

  box.addEventListener("compositionstart", () => {
    composing = true;
    enterInside = false;
  });
  box.addEventListener("compositionend", (e) => {
    composing = false;
    endedAt = enterInside ? -Infinity : e.timeStamp;
  });
  box.addEventListener("keyup", (e) => {
    if (e.key === "Enter") endedAt = -Infinity;
  });
  box.addEventListener("keydown", (e) => {
    if (e.key !== "Enter") return;
    if (composing || e.isComposing || e.keyCode === 229) {
      enterInside = true;
      endedAt = -Infinity;
      return;
    }
    const confirms = e.timeStamp - endedAt < AFTER_END_MS;
    endedAt = -Infinity;
    if (confirms) {
      e.preventDefault();
      return;
    }
    if (e.shiftKey || e.altKey || (onlyWithCtrl && !e.ctrlKey && !e.metaKey)) return;
    e.preventDefault();
    if (!e.repeat) send();
  });
}
