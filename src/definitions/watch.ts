import { type FSWatcher, watch } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { kinds } from './kinds'

const DEBOUNCE_MS = 40 // editors write a file in several steps

/**
 * Calls `react` when files of definitions change, once for changes at the same time, and never twice at once. Creates
 * the folders that do not exist, because only folders can be watched. Returns what ends it.
 */
export async function watchFolder(folder: string, react: () => Promise<void>): Promise<() => void> {
  let timer: Timer | undefined
  let isReacting = false
  let isChanged = false
  const run = async () => {
    if (isReacting) {
      isChanged = true
      return
    }
    isReacting = true
    do {
      isChanged = false
      await react()
    } while (isChanged)
    isReacting = false
  }
  const watchers: FSWatcher[] = []
  for (const kind of Object.values(kinds)) {
    const path = join(folder, kind.folder)
    await mkdir(path, { recursive: true })
    watchers.push(
      watch(path, () => {
        clearTimeout(timer)
        timer = setTimeout(run, DEBOUNCE_MS)
      }),
    )
  }
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers) watcher.close()
  }
}
