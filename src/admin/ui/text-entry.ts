/** Returns whether keys that are pressed there write text, so that they are no commands. */
export const isTextEntry = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && !!target.closest('input:not([type=checkbox]), textarea, select, [contenteditable]')
