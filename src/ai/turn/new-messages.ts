import type { MessageRow } from '../threads'
import type { Message } from './conversation'

/** A message as both sides know it: clients see the texts of a turn as one, and no server tools. */
type ConversationItem =
  | { kind: 'calls'; ids: string[] }
  | { kind: 'answer'; id: string }
  | { kind: 'said'; role: string; text: string; open: boolean }

/**
 * Returns the messages of a client that its thread does not have yet. A client that continues after a tool call sends the
 * turn again, and some clients send the whole conversation. Calls and their results are recognized by their ids, and all
 * messages before them count as known. Otherwise, the messages that equal the end of the thread are known, so that a user
 * may send the same text twice.
 */
export function findNewMessages(storedRows: MessageRow[], sent: Message[]): Message[] {
  const serverCallIds = new Set(
    storedRows.flatMap(({ ours: isServerResult, toolCallId }) => (isServerResult && toolCallId ? [toolCallId] : [])),
  )
  // The thread has the results of server tools already.
  const clientMessages = sent.filter(({ role, tool_call_id: id }) => role !== 'tool' || !serverCallIds.has(id ?? ''))
  const storedItems = toItems(storedRows, serverCallIds)
  const sentItems = clientMessages.map((one) => toItem(one))
  const storedIndexes = indexCalls(storedItems)
  for (let n = sentItems.length - 1; n >= 0; n--) {
    const index = storedIndexes.get(toKey(sentItems[n]!))
    if (index !== undefined)
      return clientMessages.slice(n + 1 + countCommonPrefix(storedItems.slice(index + 1), sentItems.slice(n + 1)))
  }
  for (let length = Math.min(storedItems.length, sentItems.length); length > 0; length--)
    if (countCommonPrefix(storedItems.slice(-length), sentItems) >= length) return clientMessages.slice(length)
  return clientMessages
}

/**
 * Returns the indexes of calls and results by their keys. The last calls with the same ids count, because some servers
 * reuse ids, and the first result after them.
 */
function indexCalls(items: ConversationItem[]): Map<string, number> {
  const indexByKey = new Map<string, number>()
  for (const [n, item] of items.entries()) {
    const key = toKey(item)
    if (item.kind === 'calls') {
      for (const id of item.ids) indexByKey.delete(toKey({ kind: 'answer', id }))
      indexByKey.set(key, n)
    } else if (item.kind === 'answer' && !indexByKey.has(key)) indexByKey.set(key, n)
  }
  return indexByKey
}

/** Texts have no key: the same one may be said again. */
const toKey = (item: ConversationItem) => (item.kind === 'said' ? '' : JSON.stringify(item))

/** Returns how many items at the beginning of both lists are the same. */
function countCommonPrefix(items: ConversationItem[], others: ConversationItem[]): number {
  const end = items.findIndex((one, n) => !others[n] || !isSameItem(one, others[n]))
  return end < 0 ? items.length : end
}

function toItems(storedRows: MessageRow[], serverCallIds: Set<string>): ConversationItem[] {
  const items: ConversationItem[] = []
  let pendingText = ''
  for (const { role, content, toolCalls, toolCallId, ours: isServerResult, incomplete } of storedRows) {
    if (isServerResult) continue
    if (toolCalls?.every(({ id }) => serverCallIds.has(id))) {
      pendingText += content
      continue
    }
    const text = role === 'assistant' ? pendingText + content : content
    pendingText = ''
    const more = { tool_calls: toolCalls ?? undefined, tool_call_id: toolCallId ?? undefined }
    items.push(toItem({ role, content: text, ...more }, incomplete))
  }
  return items
}

function toItem(
  { role, content, tool_calls: calls, tool_call_id: id }: Message,
  isIncomplete = false,
): ConversationItem {
  if (calls?.length) return { kind: 'calls', ids: calls.map((call) => call.id).sort() }
  return role === 'tool'
    ? { kind: 'answer', id: id ?? '' }
    : { kind: 'said', role, text: content ?? '', open: isIncomplete }
}

function isSameItem(stored: ConversationItem, sent: ConversationItem): boolean {
  if (stored.kind !== 'said' || sent.kind !== 'said') return Bun.deepEquals(stored, sent)
  // A client may have received only the beginning of a message that broke off, or none of it.
  return stored.role === sent.role && (stored.text === sent.text || (stored.open && stored.text.startsWith(sent.text)))
}
