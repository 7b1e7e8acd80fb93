/** Bytes at the beginning of a file by which its type is detected. */
export const DETECTED_BYTES = 64 << 10

/** Types of plain text that no content gives away. A browser runs none of them. */
const DECLARABLE_TYPES = ['text/csv', 'text/markdown', 'text/plain', 'application/json']

const MARKUP = [
  ['image/svg+xml', /<(\w+:)?svg[\s>]/i],
  ['application/xml', /^\s*<\?xml/i],
  ['text/html', /<(!doctype\s+html|html|head|body|script|iframe|img|style|a|div|p)\b/i],
  ['application/xml', /^\s*<(\?xml|!doctype|\w)/i],
] as const

/**
 * Returns the media type of a content by its first bytes. The declared one only tells apart types of text that are
 * equally harmless.
 */
export async function detectMediaType(beginning: Uint8Array, declared = ''): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type')
  const detected = await fileTypeFromBuffer(beginning).catch(() => undefined)
  if (detected && detected.mime !== 'application/xml') return detected.mime
  const text = decodeText(beginning)
  if (text === undefined) return 'application/octet-stream'
  const markup = MARKUP.find(([, pattern]) => pattern.test(text))?.[0] ?? detected?.mime
  if (markup) return markup
  const [essence = ''] = declared.toLowerCase().split(';')
  return DECLARABLE_TYPES.includes(essence.trim()) ? essence.trim() : 'text/plain'
}

function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return
  try {
    // The last character may be cut off.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return
  }
}

/** Tells whether a browser may show a content of this type beside the pages of the server. */
export const isShownInBrowsers = (type: string) =>
  /^(image\/(png|jpeg|gif|webp|avif|bmp|x-icon|apng)|video\/[\w.-]+|audio\/[\w.-]+|text\/plain|application\/pdf)$/.test(
    type,
  )
