import type { NewMessage } from '../shapes'
import type { MessageRow } from '../threads'

/** A message as both sides know it: a client sees the texts of a turn as one, and nothing of tools that ran here. */
type Item = { kind: 'calls'; ids: string } | { kind: 'said'; role: string; text: string; open: boolean }

const idsOf = (calls: { id: string }[]) =>
  calls
    .map(({ id }) => id)
    .sort()
    .join('\n')

/**
 * Of what a client sends, what its thread does not have: whoever goes on after a tool sends the turn once more, and some
 * send all that was ever said. What they begin with is known as far as it is how the thread ends; so somebody may well
 * say the same twice.
 */
export function unknown(kept: MessageRow[], sent: NewMessage[]): NewMessage[] {
  const ours = new Set(kept.flatMap(({ ours, toolCallId }) => (ours && toolCallId ? [toolCallId] : [])))
  // What tools here have answered, nobody else needs to tell.
  const theirs = sent.filter(({ role, tool_call_id: id }) => role !== 'tool' || !ours.has(id ?? ''))
  const known = itemsOf(kept, ours)
  const items = theirs.map((one) => itemOf(one))
  for (let length = Math.min(known.length, items.length); length > 0; length--) {
    const end = known.slice(known.length - length)
    if (end.every((one, n) => same(one, items[n]!))) return theirs.slice(length)
  }
  return theirs
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
    items.push(
      itemOf(
        { role, content: text, tool_calls: toolCalls ?? undefined, tool_call_id: toolCallId ?? undefined },
        incomplete,
      ),
    )
  }
  return items
}

function itemOf({ role, content, tool_calls: calls, tool_call_id: id }: NewMessage, open = false): Item {
  if (calls?.length) return { kind: 'calls', ids: idsOf(calls) }
  return { kind: 'said', role, text: role === 'tool' ? (id ?? '') : (content ?? ''), open }
}

function same(kept: Item, sent: Item): boolean {
  if (kept.kind === 'calls' || sent.kind === 'calls')
    return kept.kind === sent.kind && 'ids' in kept && kept.ids === (sent as { ids: string }).ids
  if (kept.role !== sent.role) return false
  // Of what broke off, who listened has heard less than was said, or nothing.
  return kept.text === sent.text || (kept.open && kept.text.startsWith(sent.text))
}
