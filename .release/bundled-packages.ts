import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { SERVER_ENTRIES } from './binary'

export type BundledPackage = {
  name: string
  version: string
  /** The licence as its package.json names it, an SPDX expression. */
  license: string
  author: string
  /** Its licence and notices, as it has them. */
  texts: string[]
}

const ROOT = resolve(import.meta.dir, '..')
const PAGE_ENTRY = 'src/admin/main.tsx'

/** Returns the packages of which something is in the binary, those of the admin page included, by name. */
export async function listBundledPackages(): Promise<BundledPackage[]> {
  const server = await listInputs({ entrypoints: SERVER_ENTRIES, target: 'bun', external: ['better-sqlite3'] })
  const page = await listInputs({ entrypoints: [PAGE_ENTRY], target: 'browser' })
  const folders = new Set(
    [...server, ...page].flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
  )
  return [...folders].map((folder) => readPackage(join(ROOT, folder))).sort(byNameAndVersion)
}

async function listInputs({ entrypoints, ...options }: Bun.BuildConfig): Promise<string[]> {
  const paths = entrypoints.map((path) => join(ROOT, path))
  const built = await Bun.build({ ...options, entrypoints: paths, root: ROOT, metafile: true, splitting: true })
  return Object.keys(built.metafile!.inputs).map((path) => path.replace(/^(\.\.\/)+.*?(?=node_modules\/)/, ''))
}

function readPackage(folder: string): BundledPackage {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)([-.].*)?$/i.test(file))
  const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return { name, version, license: license ?? '', author: author?.name ?? author ?? '', texts }
}

const byNameAndVersion = (one: BundledPackage, other: BundledPackage) =>
  Bun.deepEquals(one.name, other.name) ? (one.version < other.version ? -1 : 1) : one.name < other.name ? -1 : 1
