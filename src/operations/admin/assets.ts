import { IS_COMPILED } from '../../core/worker-url'

/** The name of an embedded file: the name of the asset, a hash that the compiler adds, and `.br`. */
const EMBEDDED_NAME = /([^/]+)-[a-z\d]+\.br$/

/** Returns the files that the binary holds; they are read when somebody asks for them. */
const listEmbedded = () =>
  new Map(
    Bun.embeddedFiles.flatMap((file) => {
      const name = EMBEDDED_NAME.exec((file as File).name)?.[1]
      return name ? [[name, file] as const] : []
    }),
  )

let embedded: ReturnType<typeof listEmbedded> | undefined

/** Returns the files of the admin page by name, compressed by Brotli. A checkout bundles them when they are asked for. */
export async function getAssets(): Promise<ReadonlyMap<string, Blob | Uint8Array<ArrayBuffer>>> {
  if (!IS_COMPILED) return (await import('./bundle')).bundleChangedAssets()
  embedded ??= listEmbedded()
  return embedded
}

const CONTENT_TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** Returns the response with a file of the page, in an encoding that the client accepts, or undefined. */
export async function respondWithAsset(name: string, acceptEncoding: string): Promise<Response | undefined> {
  const asset = (await getAssets()).get(name)
  if (!asset) return
  const [content, encoding] = await encode(asset, acceptEncoding)
  const headers = new Headers({
    'content-type': CONTENT_TYPES[name.split('.').at(-1)!] ?? 'application/octet-stream',
    // The name holds a hash of the content.
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'accept-encoding',
  })
  if (encoding) headers.set('content-encoding', encoding)
  return new Response(content, { headers })
}

async function encode(
  asset: Blob | Uint8Array<ArrayBuffer>,
  accepted: string,
): Promise<[Blob | Uint8Array<ArrayBuffer>, string?]> {
  if (/\bbr\b/.test(accepted)) return [asset, 'br']
  // Browsers accept Brotli over TLS only.
  const { brotliDecompressSync } = await import('node:zlib')
  const plain = new Uint8Array(brotliDecompressSync(asset instanceof Blob ? await asset.bytes() : asset))
  return /\bgzip\b/.test(accepted) ? [Bun.gzipSync(plain), 'gzip'] : [plain]
}
