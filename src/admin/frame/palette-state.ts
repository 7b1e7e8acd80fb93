import { observable } from '../api/observable'
import { isTextEntry } from '../ui/text-entry'

/** How often the command palette was opened. Each opening shows it anew. */
export const openings = observable(0)
/** The text to find. It grows with each key, also while the palette is still loading. */
export const paletteQuery = observable('')
/** Whether Enter was pressed before there was anything to choose. */
export const isEntered = observable(false)

let stopCollecting = () => {}

/** Opens the palette. What is typed before its field has the focus is collected. */
export function openPalette() {
  paletteQuery.set('')
  isEntered.set(false)
  openings.set(openings.get() + 1)
  stopCollecting()
  const focused = document.activeElement
  const handleKey = (event: KeyboardEvent) => {
    const { activeElement } = document
    if (activeElement !== focused && isTextEntry(activeElement)) return stopCollecting()
    if (collectKey(event)) {
      event.preventDefault()
      event.stopPropagation()
    }
  }
  addEventListener('keydown', handleKey, true)
  stopCollecting = () => removeEventListener('keydown', handleKey, true)
}

/** Returns false for a key that is none of the text. */
function collectKey({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return false
  if (key === 'Escape') {
    stopCollecting()
    openings.set(0)
  } else if (key === 'Enter') isEntered.set(true)
  else if (key === 'Backspace') paletteQuery.set(paletteQuery.get().slice(0, -1))
  else if (key.length === 1) paletteQuery.set(paletteQuery.get() + key)
  else return false
  return true
}
