import { BoundedMap } from '../core/bounded-map'
import { callZlib } from '../core/zlib-call'
import { isCompressible, mediaTypeOf } from './media-type'
import type { SiteEncoding, SiteFile } from './tables'

const MIN_BYTES = 256 // a smaller file fits into one packet either way
const MAX_BYTES = 8 << 20 // it is in memory while it is compressed
const BROTLI_QUALITY = 9 // the highest ones take ten times as long, for a few percent
const GZIP_LEVEL = 9

/** How a file is encoded, off the thread that answers requests. */
export const ENCODERS: Record<SiteEncoding, (bytes: Uint8Array) => Promise<Uint8Array>> = {
  br: async (bytes) => {
    const { brotliCompress, constants } = await import('node:zlib')
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
    }
    return callZlib((done) => brotliCompress(bytes, { params }, done))
  },
  gzip: async (bytes) => {
    const { gzip } = await import('node:zlib')
    return callZlib((done) => gzip(bytes, { level: GZIP_LEVEL }, done))
  },
}
/** The encodings, the preferred one first. */
export const ENCODINGS = Object.keys(ENCODERS) as SiteEncoding[]

/** Tells whether a file may be smaller in other encodings. */
export const isWorthEncoding = ({ path, size }: Pick<SiteFile, 'path' | 'size'>) =>
  size >= MIN_BYTES && size <= MAX_BYTES && isCompressible(mediaTypeOf(path))

/**
 * Returns the encoding of a file that the client prefers by `Accept-Encoding` (RFC 9110, 12.5.3); undefined for the file
 * as it is.
 */
export function chooseEncoding(
  { encodings }: Pick<SiteFile, 'encodings'>,
  accepted: string | null,
): SiteEncoding | undefined {
  if (!encodings || !accepted) return
  const weights = parseWeights(accepted)
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0
  let [best, bestWeight]: [SiteEncoding | undefined, number] = [undefined, weights.get('identity') ?? 0]
  for (const encoding of ENCODINGS) {
    if (!encodings[encoding] || weightOf(encoding) === 0) continue
    if (weightOf(encoding) > bestWeight || (!best && weightOf(encoding) === bestWeight))
      [best, bestWeight] = [encoding, weightOf(encoding)]
  }
  return best
}

/** Browsers send few different headers. */
const knownWeights = new BoundedMap<string, Map<string, number>>(100)

function parseWeights(accepted: string): Map<string, number> {
  const known = knownWeights.get(accepted)
  if (known) return known
  const weights = new Map<string, number>()
  for (const item of accepted.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    const parsed = weight === undefined ? 1 : Number(weight)
    weights.set(name === 'x-gzip' ? 'gzip' : name, parsed >= 0 && parsed <= 1 ? parsed : 0)
  }
  if (accepted.length < 200) knownWeights.set(accepted, weights)
  return weights
}
