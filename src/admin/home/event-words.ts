import type { Event } from '../api/schema'
import type { Place } from './figure-row'

const WRITE_WORDS: Record<string, string> = { create: 'was created', update: 'was changed', delete: 'was deleted' }
const NAMES: Record<string, string> = { completion: 'A model answered', failure: 'A model did not answer' }
/** What an event is about is named by the first of these. */
const ABOUT_KEYS = ['username', 'email', 'name', 'model', 'couponCode', 'of']
const BLUEPRINT_SOURCE = 'blueprints'

const toWords = (name: string) => {
  const words = name.replaceAll('-', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Returns what an event says in a few words. */
export function describeEvent({ source, kind, eventName, metadata }: Event): string {
  if (source !== BLUEPRINT_SOURCE) {
    const words = NAMES[eventName] ?? toWords(eventName === 'custom' ? kind : eventName)
    const about = ABOUT_KEYS.map((key) => metadata[key]).find((value) => typeof value === 'string' && value)
    return about ? `${words}: ${about}` : words
  }
  const written = WRITE_WORDS[eventName]
  if (written) return `${metadata.identifier ?? 'An entity'} ${written} in ${kind}`
  const imported = typeof metadata.imported === 'number' ? `, ${metadata.imported.toLocaleString()} imported` : ''
  return `${toWords(eventName)} in ${kind}${imported}`
}

/** Returns where more is to be seen about an event. */
export function findEventPlace({ source, kind, eventName, metadata }: Event): Place {
  if (source === BLUEPRINT_SOURCE) {
    const isThere = typeof metadata.identifier === 'string' && eventName !== 'delete'
    return { to: isThere ? `/data/${kind}/${encodeURIComponent(String(metadata.identifier))}` : `/data/${kind}` }
  }
  return { to: '/automation/events', search: { kind, eventName } }
}

/** Whether an event says that something went wrong. */
export const isFailure = ({ eventName }: Event) => /(failed|failure|lost|damaged|drift|past-due)$/.test(eventName)
