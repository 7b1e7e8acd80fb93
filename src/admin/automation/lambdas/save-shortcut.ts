import type { KeyboardEvent } from 'react'

/** Returns what saves by Ctrl-Enter and Ctrl-S, before an editor of code does something else with these keys. */
export const saveByKey = (save: () => unknown) => (event: KeyboardEvent) => {
  if (!(event.ctrlKey || event.metaKey) || (event.key !== 'Enter' && event.key !== 's')) return
  event.preventDefault()
  event.stopPropagation()
  save()
}
