/** Copies by a selected input, which works where the page comes over plain HTTP. */
function copyBySelection(text: string) {
  const [input, focused] = [document.createElement('textarea'), document.activeElement]
  input.value = text
  input.readOnly = true
  input.style.cssText = 'position: fixed; inset: 0 auto auto 0; opacity: 0'
  document.body.append(input)
  input.select()
  const isCopied = document.execCommand('copy')
  input.remove()
  if (focused instanceof HTMLElement) focused.focus()
  if (!isCopied) throw new Error('The browser did not copy the text. Select it and copy it by hand.')
}

/** Puts a text into the clipboard. @throws where the browser refuses it */
export async function copyText(text: string) {
  if (window.isSecureContext) await navigator.clipboard.writeText(text)
  else copyBySelection(text)
}
