import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'

/** The files of the admin page by name, each compressed by Brotli. */
export type Assets = Map<string, Uint8Array<ArrayBuffer>>

const SOURCE_FOLDER = resolve(import.meta.dir, '../../admin')
const FAST_QUALITY = 4
const BEST_QUALITY = 11

/** Bundles the admin page from its sources. @throws AggregateError when they cannot be bundled */
export async function bundleAssets(quality = FAST_QUALITY): Promise<Assets> {
  const { outputs } = await Bun.build({
    entrypoints: [join(SOURCE_FOLDER, 'main.tsx')],
    target: 'browser',
    splitting: true,
    minify: true,
    naming: '[name]-[hash].[ext]',
    publicPath: '/admin/assets/',
    define: { 'process.env.NODE_ENV': '"production"' },
    jsx: { runtime: 'automatic', development: false },
  })
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality }
  const compress = async (output: Blob) => new Uint8Array(brotliCompressSync(await output.arrayBuffer(), { params }))
  return new Map(await Promise.all(outputs.map(async (each) => [basename(each.path), await compress(each)] as const)))
}

/** Returns the time of the last change of the sources, in ms since 1970. */
const lastChange = () =>
  Math.max(
    ...readdirSync(SOURCE_FOLDER, { recursive: true }).map(
      (file) => statSync(join(SOURCE_FOLDER, String(file))).mtimeMs,
    ),
  )

let latest: { changed: number; assets: Promise<Assets> } | undefined

/** Returns the bundled page. It is bundled anew after a change of its sources. */
export function bundleChangedAssets(): Promise<Assets> {
  const changed = lastChange()
  if (latest?.changed !== changed) latest = { changed, assets: bundleAssets() }
  return latest.assets
}

// `npm run build` writes the files into a folder, from which they get into the binary.
if (import.meta.main) {
  const folder = resolve(process.argv[2]!)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [name, content] of await bundleAssets(BEST_QUALITY)) writeFileSync(join(folder, `${name}.br`), content)
}
