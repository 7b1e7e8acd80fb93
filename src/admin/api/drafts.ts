import { observable } from './observable'
import { getNamedTenant } from './session'

const PREFIX = 'atoll-draft'

/** The id of the user whose drafts are kept and read. */
export const draftOwner = observable('')

/** Tenants and users of one browser do not see each other's drafts: the tenant is in the host or the name. */
const storageKey = (key: string) => `${PREFIX}:${getNamedTenant() ?? ''}:${draftOwner.get()}:${key}`

/** Returns what was typed into a form before its tab was closed, or undefined. */
export function readDraft<Values>(key: string): Values | undefined {
  try {
    return JSON.parse(localStorage.getItem(storageKey(key)) ?? 'null') ?? undefined
  } catch {
    // What an older version of the page stored may not be readable any more.
    return undefined
  }
}

/** Keeps what was typed into a form in the browser, until it is saved. */
export function keepDraft(key: string, values: unknown) {
  try {
    localStorage.setItem(storageKey(key), JSON.stringify(values))
  } catch {
    // The browser has no room or forbids it; the form works without.
  }
}

/** Forgets what was typed into a form. */
export const removeDraft = (key: string) => localStorage.removeItem(storageKey(key))

/** Forgets everything that was typed, as after a sign-out. */
export function removeAllDrafts() {
  for (const key of Object.keys(localStorage)) if (key.startsWith(`${PREFIX}:`)) localStorage.removeItem(key)
}
