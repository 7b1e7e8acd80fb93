import type { Event } from '../api/schema'
import type { LinkTarget } from './figure-row'

const WRITE_VERBS: Record<string, string> = { create: 'was created', update: 'was changed', delete: 'was deleted' }
const NAMES: Record<string, string> = { completion: 'A model answered', failure: 'A model did not answer' }
/** The first of these properties names what an event is about. */
const SUBJECT_KEYS = ['username', 'email', 'name', 'model', 'couponCode', 'of', 'quota']
const BLUEPRINT_SOURCE = 'blueprints'

const toSentenceCase = (name: string) => {
  const words = name.replaceAll('-', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Returns what happened, in a few words. */
export function describeEvent({ source, kind, eventName, metadata }: Event): string {
  if (source !== BLUEPRINT_SOURCE) {
    const words = NAMES[eventName] ?? toSentenceCase(eventName === 'custom' ? kind : eventName)
    const subject = SUBJECT_KEYS.map((key) => metadata[key]).find((value) => typeof value === 'string' && value)
    return subject ? `${words}: ${subject}` : words
  }
  const written = WRITE_VERBS[eventName]
  if (written) return `${metadata.identifier ?? 'An entity'} ${written} in ${kind}`
  const imported = typeof metadata.imported === 'number' ? `, ${metadata.imported.toLocaleString()} imported` : ''
  return `${toSentenceCase(eventName)} in ${kind}${imported}`
}

/** Returns the link to what an event is about, or to the events like it. */
export function toEventLink({ source, kind, eventName, metadata }: Event): LinkTarget {
  if (source === BLUEPRINT_SOURCE) {
    const hasEntity = typeof metadata.identifier === 'string' && eventName !== 'delete'
    return { to: hasEntity ? `/data/${kind}/${encodeURIComponent(String(metadata.identifier))}` : `/data/${kind}` }
  }
  return { to: '/automation/events', search: { kind, eventName } }
}

/** Whether an event says that something went wrong. */
export const isFailure = ({ eventName }: Event) => /(failed|failure|lost|damaged|drift|past-due)$/.test(eventName)
