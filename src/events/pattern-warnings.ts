import type { Ctx } from '../accounts/context'
import type { Warning } from '../blueprints/shapes'
import { findNearestKey } from '../core/nearest-key'
import { BLUEPRINT_SOURCE, type KnownEvent, listKnownEvents, WRITE_EVENTS } from './known-events'

/** Which events somebody waits for; a part that is missing or `*` matches all. `paths` names the parts in a request. */
export type EventPattern = Partial<KnownEvent> & { paths: KnownEvent }

const PARTS = [
  ['source', 'source'],
  ['kind', 'kind'],
  ['eventName', 'name'],
] as const

/** Returns a warning for each pattern that no known event matches. */
export async function listPatternWarnings(ctx: Pick<Ctx, 'db'>, patterns: EventPattern[]): Promise<Warning[]> {
  if (!patterns.length) return []
  const known = await listKnownEvents(ctx)
  return patterns.flatMap((pattern) => findPatternWarning(pattern, known) ?? [])
}

function findPatternWarning({ paths, ...pattern }: EventPattern, known: KnownEvent[]): Warning | undefined {
  let events = known
  for (const [part, word] of PARTS) {
    const wanted = pattern[part]
    if (wanted === undefined || wanted === '*') continue
    const matching = events.filter((event) => event[part] === wanted)
    if (!matching.length)
      return { path: paths[part], code: 'UNKNOWN_EVENT', message: describeMiss(part, word, wanted, events) }
    events = matching
  }
}

/** Says that no event has a source, kind or name, among those that match so far. */
function describeMiss(part: keyof KnownEvent, word: string, wanted: string, events: KnownEvent[]): string {
  const [first] = events
  const kinds = new Set(events.map(({ source, kind }) => `${source} ${kind}`))
  if (part === 'eventName' && kinds.size === 1 && first?.source === BLUEPRINT_SOURCE && isWriteEvent(wanted))
    return `The blueprint "${first.kind}" does not record "${wanted}" events. Switch on ${wanted} in its dispatchers.`
  const near = findNearestKey(wanted, [...new Set(events.map((event) => event[part]))])
  const hint = near ? `Did you mean "${near}"?` : 'GET /api/events/known lists those that are known.'
  return `No known event has the ${word} "${wanted}", so this may never run. ${hint}`
}

const isWriteEvent = (name: string) => WRITE_EVENTS.some((event) => event === name)
