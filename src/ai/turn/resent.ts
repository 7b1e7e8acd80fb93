import type { NewMessage } from '../shapes'
import type { MessageRow } from '../threads'

/** A message as both sides know it: a client sees the texts of a turn as one, and nothing of tools that ran here. */
type Item =
  | { kind: 'calls'; ids: string[] }
  | { kind: 'answer'; id: string }
  | { kind: 'said'; role: string; text: string; open: boolean }

/**
 * Of what a client sends, what its thread does not have: whoever goes on after a tool sends the turn once more, and some
 * send all that was ever said. Calls and their answers are known by their ids, and so is what comes before them. Besides, what
 * they begin with is known as far as it is how the thread ends; so somebody may well say the same twice.
 */
export function unknown(kept: MessageRow[], sent: NewMessage[]): NewMessage[] {
  const ours = new Set(kept.flatMap(({ ours, toolCallId }) => (ours && toolCallId ? [toolCallId] : [])))
  // What tools here have answered, nobody else needs to tell.
  const theirs = sent.filter(({ role, tool_call_id: id }) => role !== 'tool' || !ours.has(id ?? ''))
  const known = itemsOf(kept, ours)
  const items = theirs.map((one) => itemOf(one))
  for (let n = items.length - 1; n >= 0; n--) {
    const place = placeOf(items[n]!, known)
    if (place >= 0) return theirs.slice(n + 1 + alike(known.slice(place + 1), items.slice(n + 1)))
  }
  for (let length = Math.min(known.length, items.length); length > 0; length--)
    if (alike(known.slice(-length), items) >= length) return theirs.slice(length)
  return theirs
}

/** Where a call, or its answer, is; some servers give later calls the same ids again. */
function placeOf(item: Item, known: Item[]): number {
  if (item.kind === 'said') return -1
  if (item.kind === 'calls') return known.findLastIndex((one) => same(one, item))
  const calls = known.findLastIndex((one) => one.kind === 'calls' && one.ids.includes(item.id))
  return known.findIndex((one, n) => n > calls && same(one, item))
}

/** How many they begin with that are the same. */
function alike(some: Item[], others: Item[]): number {
  const end = some.findIndex((one, n) => !others[n] || !same(one, others[n]))
  return end < 0 ? some.length : end
}

function itemsOf(kept: MessageRow[], ours: Set<string>): Item[] {
  const items: Item[] = []
  let before = ''
  for (const { role, content, toolCalls, toolCallId, ours: own, incomplete } of kept) {
    if (own) continue
    if (toolCalls?.every(({ id }) => ours.has(id))) {
      before += content
      continue
    }
    const text = role === 'assistant' ? before + content : content
    before = ''
    const more = { tool_calls: toolCalls ?? undefined, tool_call_id: toolCallId ?? undefined }
    items.push(itemOf({ role, content: text, ...more }, incomplete))
  }
  return items
}

function itemOf({ role, content, tool_calls: calls, tool_call_id: id }: NewMessage, open = false): Item {
  if (calls?.length) return { kind: 'calls', ids: calls.map((call) => call.id).sort() }
  return role === 'tool' ? { kind: 'answer', id: id ?? '' } : { kind: 'said', role, text: content ?? '', open }
}

function same(kept: Item, sent: Item): boolean {
  if (kept.kind !== 'said' || sent.kind !== 'said') return Bun.deepEquals(kept, sent)
  // Of what broke off, who listened has heard less than was said, or nothing.
  return kept.role === sent.role && (kept.text === sent.text || (kept.open && kept.text.startsWith(sent.text)))
}
