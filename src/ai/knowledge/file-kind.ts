import { Problem } from '../../core/problem'

/** How files that are no text begin, and what they are. */
const SIGNATURES: [string, string][] = [
  ['%PDF-', 'a PDF'],
  ['PK\x03\x04', 'an archive or an Office document'],
  ['\xd0\xcf\x11\xe0', 'an Office document'],
  ['{\\rtf', 'a rich text document'],
  ['\x89PNG', 'a picture'],
  ['\xff\xd8\xff', 'a picture'],
  ['GIF8', 'a picture'],
  ['\x1f\x8b', 'a compressed file'],
]

const DATA_URL = /^data:(?:application|image|audio|video)\/[\w.+-]+;base64,/i
const SAMPLE_CHARACTERS = 4_000
const MAX_UNREADABLE_SHARE = 0.1 // of the characters of a text

/** @throws 422 UNREADABLE_FILE for a content in which no text could be found, such as that of a PDF */
export function assertReadable(content: unknown) {
  if (typeof content !== 'string') return
  const kind = findKind(content.slice(0, SAMPLE_CHARACTERS))
  if (!kind) return
  throw new Problem(
    422,
    'UNREADABLE_FILE',
    `The content is ${kind}, not text. Send the text of the file, as Markdown for example.`,
  )
}

/** Returns what a content is that is no text. It may be encoded in base64, or as text that was made of its bytes. */
function findKind(sample: string): string | undefined {
  const encoded = sample.replace(DATA_URL, '').slice(0, 1_000)
  const isBase64 = encoded.length >= 16 && /^[A-Za-z0-9+/\r\n]+=*\s*$/.test(encoded)
  const decoded = isBase64 ? Buffer.from(encoded, 'base64').toString('latin1') : undefined
  for (const start of [sample.trimStart(), decoded])
    for (const [signature, kind] of SIGNATURES) if (start?.startsWith(signature)) return kind
  if (DATA_URL.test(sample)) return 'a file in base64'
  const unreadable = sample.match(/[\ufffd\p{Cc}]/gu)?.filter((one) => !/\s/.test(one)).length ?? 0
  return unreadable > sample.length * MAX_UNREADABLE_SHARE ? 'a file of bytes' : undefined
}
