// Small helpers around the document.

export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element #${id}`);
  return found as T;
}

/** The first element of that class inside `root`. */
export function part<T extends HTMLElement>(root: HTMLElement, name: string): T {
  const found = root.querySelector<T>(`.${name}`);
  if (!found) throw new Error(`no element .${name}`);
  return found;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  if (className) el.className = className;
  if (text) el.textContent = text;
  return el;
}

export function makeButton(className: string, text: string, onClick: () => void): HTMLButtonElement {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", onClick);
  return button;
}

/** Copies to the clipboard; also where the page is not served over a secure context. False: not allowed. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = make("textarea", "offscreen");
    box.value = text;
    document.body.append(box);
    box.select();
    const copied = document.execCommand("copy");
    box.remove();
    return copied;
  }
}

/**
 * Replaces a text box's content as if it had been typed, so that the browser's own undo knows of it. The input event
 * comes by itself.
 */
export function typeInto(box: HTMLTextAreaElement, text: string): void {
  if (box.value === text) return;
  box.focus();
  box.select();
  if (text !== "" && document.execCommand("insertText", false, text) && box.value === text) return;
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

/** The box grows with its text, up to a bound that the style sheet sets. */
export function fitBox(box: HTMLTextAreaElement): void {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

export interface Choice<T> {
  value: T;
  label: string;
}

/**
 * A row of choices, one of which is chosen, as a radio group: Tab enters it, the arrow keys move in it.
 * `chosen` may be a value that is not among them; then none is marked.
 */
export function radioGroup<T>(box: HTMLElement, choices: Choice<T>[], chosen: T, choose: (value: T) => void): void {
  const hadFocus = [...box.children].indexOf(document.activeElement!);
  const buttons = choices.map((choice) => {
    const button = makeButton("", choice.label, () => pick(choice.value, button));
    button.setAttribute("role", "radio");
    return button;
  });

  function mark(value: T): void {
    const at = choices.findIndex((c) => c.value === value);
    buttons.forEach((b, i) => {
      b.setAttribute("aria-checked", String(i === at));
      b.tabIndex = i === Math.max(at, 0) ? 0 : -1;
    });
  }

  function pick(value: T, button: HTMLButtonElement): void {
    mark(value);
    button.focus();
    choose(value);
  }

  box.onkeydown = (e) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (step === undefined) return;
    e.preventDefault();
    const from = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = (from + step + buttons.length) % buttons.length;
    pick(choices[to]!.value, buttons[to]!);
  };
  mark(chosen);
  box.replaceChildren(...buttons);
  if (hadFocus >= 0) buttons[hadFocus]?.focus();
}
