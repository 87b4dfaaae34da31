// Short messages at the lower edge, read out politely; some can be undone.

import { byId } from "./dom";

let timer = 0;

export function toast(text: string, undo?: () => void): void {
  const box = byId("toast");
  const button = byId<HTMLButtonElement>("toast-undo");

  byId("toast-text").textContent = text;
  box.classList.add("shown");
  button.hidden = !undo;
  button.onclick = () => {
    hideToast();
    undo?.();
  };
  clearTimeout(timer);
  timer = window.setTimeout(hideToast, undo ? 8000 : 2500);
}

export function hideToast(): void {
  clearTimeout(timer);
  byId("toast").classList.remove("shown");
  byId("toast-undo").hidden = true;
}

let announceTimer = 0;
let waiting: string[] = [];

/** For screen readers alone. Several in a moment are read as one. */
export function announce(text: string): void {
  waiting.push(text);
  clearTimeout(announceTimer);
  announceTimer = window.setTimeout(() => {
    byId("announcer").textContent = waiting.join("\n");
    waiting = [];
  }, 150);
}
