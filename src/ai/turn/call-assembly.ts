import type { ToolCall } from '../shapes'
import { MalformedReply } from './errors'
import { isObject, type Members, mergeMembers, omitKnown } from './provider-members'

const MAX_TOOL_CALLS = 128

/** A tool call, and the members of it that only its provider knows; those of its function are in `function`. */
export type AssembledCall = { call: ToolCall; members: Members }

type Call = { id: string; name: string; arguments: string; members: Members; functionMembers: Members }

/** What a piece says about its call. Its parts come from another server, so each may be missing. */
type Piece = { index?: number; id: string; name: string; arguments: string; members: Members; functionMembers: Members }

/**
 * Puts tool calls together from pieces, as servers really send them: with indexes that are shared, missing, late or
 * wrong, ids that are repeated or late, names in pieces, arguments as an object. A call is first named, then given
 * arguments, and is whole once these are a JSON object; a piece that a whole call cannot continue begins another one.
 */
export class CallAssembly {
  readonly #calls: Call[] = []
  readonly #byIndex = new Map<number, Call>()
  #latest?: Call

  /** `toolNames` are those that the model was offered: they tell the piece of a name from a name. */
  constructor(private toolNames: readonly string[] = []) {}

  /** Adds the calls of a message or of a chunk. Returns how many characters of arguments they add. @throws MalformedReply */
  add(list: unknown): number {
    const items = Array.isArray(list) ? list : isObject(list) ? [list] : []
    const pieces = items.filter(isObject).map((item, n) => toPiece(item, items.length > 1 ? n : undefined))
    for (const piece of pieces) this.#addPiece(piece)
    return pieces.reduce((sum, piece) => sum + piece.arguments.length, 0)
  }

  get size(): number {
    return this.#listCalls().length
  }

  /** Whether a call has begun whose arguments do not end. */
  get isAmidCall(): boolean {
    return this.#listCalls().some((call) => call.arguments.trim() !== '' && !isWhole(call))
  }

  toCalls(): AssembledCall[] {
    return this.#listCalls().map(({ id, name, functionMembers, members, ...call }) => ({
      call: { id, type: 'function', function: { name, arguments: call.arguments } },
      members: { ...members, ...(Object.keys(functionMembers).length && { function: functionMembers }) },
    }))
  }

  /** Pieces without a name and arguments are no call. */
  #listCalls = () => this.#calls.filter((call) => call.name || call.arguments)

  #addPiece(piece: Piece) {
    const call = this.#findCall(piece) ?? this.#beginCall()
    if (piece.index !== undefined) this.#byIndex.set(piece.index, call)
    this.#latest = call
    call.id ||= piece.id
    if (!call.arguments) call.name = this.#joinName(call.name, piece.name)
    if (!isRepetition(call, piece)) call.arguments += piece.arguments
    call.members = mergeMembers(call.members, piece.members)
    call.functionMembers = mergeMembers(call.functionMembers, piece.functionMembers)
  }

  #beginCall(): Call {
    if (this.#calls.length >= MAX_TOOL_CALLS) throw new MalformedReply('The AI source calls too many tools at once.')
    const call = { id: '', name: '', arguments: '', members: {}, functionMembers: {} }
    this.#calls.push(call)
    return call
  }

  /** Returns the call that a piece continues, or undefined when it begins another one. */
  #findCall(piece: Piece): Call | undefined {
    const atIndex = piece.index === undefined ? this.#latest : this.#byIndex.get(piece.index)
    if (piece.id) return this.#findCallWithId(piece, atIndex)
    // Without a name, an unknown index is that of the call before: some servers count pieces instead of calls.
    const call = atIndex ?? (piece.name ? undefined : this.#latest)
    return call && this.#mayContinue(call, piece) ? call : undefined
  }

  #findCallWithId(piece: Piece, atIndex: Call | undefined): Call | undefined {
    const sameId = atIndex?.id === piece.id ? atIndex : this.#calls.findLast(({ id }) => id === piece.id)
    if (!sameId) return atIndex?.id === '' && this.#mayContinue(atIndex, piece) ? atIndex : undefined
    if (isRepetition(sameId, piece)) return this.#isElsewhere(sameId, piece) ? undefined : sameId
    // Some servers give all calls one id: then another index, with a name, is another call.
    const isTail = piece.arguments && !piece.arguments.trimStart().startsWith('{') && sameId.arguments
    if (piece.name && !isTail && this.#isElsewhere(sameId, piece)) return
    return this.#mayContinue(sameId, piece) ? sameId : undefined
  }

  /** Whether a piece has an index, and no piece of the call had it. */
  #isElsewhere = (call: Call, { index }: Piece) => index !== undefined && this.#byIndex.get(index) !== call

  #mayContinue(call: Call, piece: Piece): boolean {
    if (piece.name && call.arguments && piece.name !== call.name) return false
    if (piece.name && !call.arguments && !this.#continuesName(call.name, piece.name)) return false
    return isRepetition(call, piece) || !(piece.arguments.trimStart().startsWith('{') && isWhole(call))
  }

  #continuesName(before: string, piece: string): boolean {
    const isComplete = this.toolNames.includes(before)
    return !isComplete || piece === before || this.#isNameStart(before + piece) || piece.startsWith(before)
  }

  /** Servers send a name in pieces, again with each piece, or as far as it is known. */
  #joinName(before: string, piece: string): string {
    if (!piece || this.#isNameStart(before + piece)) return before + piece
    if (piece === before || (before && piece.startsWith(before))) return piece
    return before + piece
  }

  #isNameStart = (text: string) => this.toolNames.some((name) => name.startsWith(text))
}

function toPiece(item: Members, position: number | undefined): Piece {
  const { index, id, function: of } = item
  const callFunction = isObject(of) ? of : {}
  return {
    index: toIndex(index) ?? position,
    id: typeof id === 'string' || typeof id === 'number' ? `${id}` : '',
    name: typeof callFunction.name === 'string' ? callFunction.name : '',
    arguments: toArgumentsText(callFunction.arguments),
    members: omitKnown(item, KNOWN_CALL_MEMBERS),
    functionMembers: omitKnown(callFunction, KNOWN_FUNCTION_MEMBERS),
  }
}

const KNOWN_CALL_MEMBERS = new Set(['index', 'id', 'type', 'function'])
const KNOWN_FUNCTION_MEMBERS = new Set(['name', 'arguments'])

function toIndex(index: unknown): number | undefined {
  const number = typeof index === 'string' && /^\d{1,9}$/.test(index) ? Number(index) : index
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined
}

/** An empty object says that there are no arguments yet. */
function toArgumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return isObject(value) && Object.keys(value).length ? JSON.stringify(value) : ''
}

/** Whether a piece says all the arguments of a call again. */
const isRepetition = (call: Call, piece: Piece) =>
  piece.arguments !== '' &&
  piece.arguments === call.arguments &&
  (piece.id ? piece.id === call.id : !piece.name) &&
  isWhole(call)

function isWhole({ arguments: text }: Call): boolean {
  if (!text.trimEnd().endsWith('}')) return false
  try {
    return isObject(JSON.parse(text))
  } catch {
    return false
  }
}
