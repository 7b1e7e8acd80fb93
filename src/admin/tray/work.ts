import { newId } from '../api/new-id'
import { observable } from '../api/observable'

const STORAGE_KEY = 'atoll-work'
const SAVE_INTERVAL_MS = 1_000
/** Work may report a hundred times a second, which is more than can be shown. */
const SHOW_INTERVAL_MS = 120

/** Long work as the tray shows it. */
export type Work = {
  id: string
  /** What is done, such as "Import of contacts.csv". */
  label: string
  unit: 'rows' | 'bytes'
  state: 'running' | 'done' | 'failed' | 'stopped'
  done: number
  /** Left out while it is not known how much there is. */
  total?: number
  startedAt: number
  /** How it ended, in a sentence. */
  result?: string
  /** The route that shows it. */
  path?: string
}

/** How running work learns that it is cancelled, and reports its progress. */
export type WorkControl = {
  /** Aborted when the user cancels it. */
  signal: AbortSignal
  /** Says how much is done. */
  report(done: number, total?: number): void
}

type NewWork = Pick<Work, 'label' | 'unit' | 'total' | 'path'> & {
  /** Does the work, and returns how it ended in a sentence. @throws what the tray shows as its failure */
  run(control: WorkControl): Promise<string>
}

const controllers = new Map<string, AbortController>()
let savedAt = 0

/** All long work of this tab, the newest first. */
export const works = observable<readonly Work[]>(readStoredWorks())

/** A tab remembers its work when it is reloaded, but what was running then has ended. */
function readStoredWorks(): Work[] {
  try {
    const stored: Work[] = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? '[]')
    return stored.map((work) =>
      work.state === 'running'
        ? { ...work, state: 'stopped', result: 'The page was reloaded before it was done.' }
        : work,
    )
  } catch {
    // What an older version of the page stored may not be readable any more.
    return []
  }
}

function storeWorks() {
  savedAt = Date.now()
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(works.get()))
  } catch {
    // The browser has no room or forbids it; the work goes on.
  }
}

function changeWork(id: string, change: Partial<Work>) {
  works.set(works.get().map((work) => (work.id === id ? { ...work, ...change } : work)))
  if (change.state || Date.now() - savedAt > SAVE_INTERVAL_MS) storeWorks()
}

/** Asks before the tab is closed while something is running. */
const warnBeforeUnload = (event: BeforeUnloadEvent) => event.preventDefault()

/** Starts long work, which the tray shows until it is dismissed. Resolves when it has ended, however it did. */
export async function startWork({ run, ...description }: NewWork): Promise<Work> {
  const id = newId()
  const controller = new AbortController()
  controllers.set(id, controller)
  addEventListener('beforeunload', warnBeforeUnload)
  works.set([{ ...description, id, state: 'running', done: 0, startedAt: Date.now() }, ...works.get()])
  storeWorks()
  let latest: Partial<Work> = {}
  const showLatest = () => changeWork(id, latest)
  const timer = setInterval(showLatest, SHOW_INTERVAL_MS)
  const report = (done: number, total?: number) => {
    latest = { done, ...(total !== undefined && { total }) }
  }
  const outcome = await run({ signal: controller.signal, report }).then(
    (result): Partial<Work> => ({ state: 'done', result }),
    (error): Partial<Work> =>
      controller.signal.aborted
        ? { state: 'stopped', result: 'It was cancelled.' }
        : { state: 'failed', result: error instanceof Error ? error.message : String(error) },
  )
  clearInterval(timer)
  controllers.delete(id)
  if (!controllers.size) removeEventListener('beforeunload', warnBeforeUnload)
  changeWork(id, { ...latest, ...outcome })
  return works.get().find((work) => work.id === id)!
}

/** Cancels work that is running. */
export const cancelWork = (id: string) => controllers.get(id)?.abort()

/** Takes work that has ended from the tray. */
export function dismissWork(id: string) {
  works.set(works.get().filter((work) => work.id !== id))
  storeWorks()
}
