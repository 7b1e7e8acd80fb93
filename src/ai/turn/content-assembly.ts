import { isObject, type Members, mergePiece } from './provider-members'

/**
 * Puts the content of a message together, which servers send as text, or as a list of parts: of text, and of thinking,
 * which clients do not see.
 */
export class ContentAssembly {
  text = ''
  #parts: Members[] = []
  #hasOtherParts = false

  /** Adds a content or a piece of it, and returns its text. */
  add(content: unknown): string {
    const parts = typeof content === 'string' ? toTextParts(content) : toParts(content)
    this.#hasOtherParts ||= parts.some((part) => !isText(part))
    this.#parts = mergePiece(this.#parts, parts) as Members[]
    const text = parts.map(toText).join('')
    this.text += text
    return text
  }

  /** The parts if there are others than text, to be sent back as they came. */
  get parts(): Members[] | undefined {
    return this.#hasOtherParts ? this.#parts : undefined
  }
}

const toTextParts = (text: string) => (text ? [{ type: 'text', text }] : [])

/** Returns parts; some servers have texts among them, or send a single one. */
const toParts = (content: unknown): Members[] =>
  (Array.isArray(content) ? content : [content]).flatMap((part) =>
    typeof part === 'string' ? toTextParts(part) : isObject(part) ? [part] : [],
  )

const TEXT_TYPES = ['text', 'output_text', 'refusal']

const toText = (part: Members): string => {
  if (!TEXT_TYPES.includes(String(part.type ?? 'text'))) return ''
  const text = part.text ?? part.refusal
  return typeof text === 'string' ? text : ''
}

/** Whether a part has a text and nothing else. */
const isText = (part: Members) =>
  Object.keys(part).every((key) => ['type', 'text', 'refusal', 'index'].includes(key)) &&
  typeof (part.text ?? part.refusal) === 'string'
