import { isStorable } from '../../core/body'
import { MalformedReply } from './errors'

/** Members of a provider's message, or of a call in it, that this server does not know. They go back unchanged. */
export type Members = Record<string, unknown>

const MAX_DEPTH = 32

/** Texts that are whole in each piece. */
const WHOLE_TEXTS = new Set(['id', 'type', 'format', 'role', 'name', 'object', 'status'])

/** Returns the members of a piece that are not in `known`, and have a value. */
export const omitKnown = (piece: Members, known: ReadonlySet<string>): Members =>
  Object.fromEntries(
    Object.entries(piece).filter(([key, value]) => !known.has(key) && value !== null && value !== undefined),
  )

/** Returns what a streamed value is after its next piece: texts and lists grow, other values are replaced. */
export function mergePiece(before: unknown, piece: unknown, key = ''): unknown {
  if (piece === null || piece === undefined) return before ?? piece
  if (typeof before === 'string' && typeof piece === 'string')
    return WHOLE_TEXTS.has(key) ? piece || before : before + piece
  if (Array.isArray(before) && Array.isArray(piece)) return piece.reduce(addItem, before)
  if (Array.isArray(piece)) return piece.reduce(addItem, [])
  if (isObject(before) && isObject(piece)) return mergeMembers(before, piece)
  return piece
}

/** Returns members after the next piece of some of them. */
export const mergeMembers = (before: Members, piece: Members): Members => {
  const after = new Map(Object.entries(before))
  for (const [key, value] of Object.entries(piece)) after.set(key, mergePiece(after.get(key), value, key))
  return Object.fromEntries(after)
}

/** Adds an item to a list, or to the item of the list that it continues. */
function addItem(items: unknown[], item: unknown): unknown[] {
  if (!isObject(item)) return [...items, item]
  const continued = items.findLastIndex((one, n) => isObject(one) && continues(one, item, n === items.length - 1))
  return continued < 0 ? [...items, item] : items.with(continued, mergePiece(items[continued], item))
}

/** Whether `item` is the next piece of `before`: it has its index or, without one, is text of its kind that follows it. */
function continues(before: Members, item: Members, isLast: boolean): boolean {
  if (before.type !== undefined && item.type !== undefined && before.type !== item.type) return false
  if (Number.isInteger(item.index) || Number.isInteger(before.index)) return item.index === before.index
  return isLast && before.type !== undefined && GROWING_KEYS.some((key) => key in item) && !before.signature
}

const GROWING_KEYS = ['text', 'thinking', 'signature']

export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns about how many characters a value has as JSON. @throws MalformedReply when it is nested too deeply */
export function countCharacters(value: unknown, depth = 0): number {
  if (depth > MAX_DEPTH) throw new MalformedReply('The answer of the AI source is nested too deeply.')
  if (typeof value === 'string') return value.length
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + 1 + countCharacters(item, depth + 1), 0)
  if (!isObject(value)) return 4
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length + countCharacters(item, depth + 1), 0)
}

/** Returns members that can be stored: all of them, or else those that can be. */
export const toStorableMembers = (members: Members): Members =>
  isStorable(members) ? members : Object.fromEntries(Object.entries(members).filter((entry) => isStorable(entry)))
