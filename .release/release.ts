// Builds the archives of a release in dist/release: `npm run release`, or `npm run release -- --platforms linux-x64,darwin-arm64`.
// With `--smoke` it starts those that this machine can run, and checks the others by their headers.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '../package.json'
import { createTarGz, createZip, type Entry } from './archives'
import { compileBinary } from './binary'
import { listBundledPackages } from './bundled-packages'
import { recordBytecodeOrder } from './bytecode-order'
import { runCommand } from './command'
import { isPermissive, writeLicenses } from './licenses'
import { isSignatureValid, signAdHoc } from './mach-signature'
import { binaryName, isWindows, PLATFORMS, type Platform } from './platforms'
import { fetchRuntime } from './runtimes'
import { writeSbom } from './sbom'
import { smokeTest } from './smoke'

const ROOT = resolve(import.meta.dir, '..')
const OUTPUT = join(ROOT, 'dist/release')
const BINARIES = join(ROOT, 'dist/binaries')
const RUNTIMES = join(ROOT, 'dist/runtimes')

const { values: options } = parseArgs({ options: { platforms: { type: 'string' }, smoke: { type: 'boolean' } } })
const selected = options.platforms?.split(',')
const unknown = selected?.filter((name) => !PLATFORMS.some((platform) => platform.name === name)) ?? []
if (unknown.length) {
  console.error(`Unknown platform ${unknown}. Known: ${PLATFORMS.map(({ name }) => name).join(', ')}.`)
  process.exit(2)
}
const platforms = PLATFORMS.filter(({ name }) => !selected || selected.includes(name))

/** The time of the commit, so that everybody who builds it gets the same files (s since 1970). */
const time = Number(
  process.env.SOURCE_DATE_EPOCH ?? (await runCommand(['git', 'log', '-1', '--format=%ct'], { cwd: ROOT })),
)
const packages = await listBundledPackages()
const refused = packages.filter(({ license }) => !isPermissive(license))
if (refused.length)
  throw new Error(`Not permissive: ${refused.map(({ name, license }) => `${name} (${license || 'none'})`).join(', ')}`)
const licenses = writeLicenses(packages)

rmSync(OUTPUT, { recursive: true, force: true })
mkdirSync(OUTPUT, { recursive: true })
await runCommand([process.execPath, 'run', 'build:page'], { cwd: ROOT })
const bytecodeOrder = await recordBytecodeOrder()
for (const platform of platforms) {
  const binary = await buildBinary(platform)
  const archive = writeArchive(platform, binary)
  console.log(`${basename(archive)}  ${toMegabytes(Bun.file(archive).size)}, the binary ${toMegabytes(binary.length)}`)
}
writeFileSync(join(OUTPUT, `atoll-${version}.cdx.json`), await writeSbom(packages, ROOT, time))
writeFileSync(join(OUTPUT, 'THIRD_PARTY_LICENSES.txt'), licenses)
writeChecksums()

if (options.smoke)
  for (const platform of platforms)
    console.log(`${platform.name}: ${await smokeTest(platform, join(BINARIES, platform.name, binaryName(platform)))}`)

function toMegabytes(bytes: number) {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

async function buildBinary(platform: Platform): Promise<Buffer> {
  const runtime = await fetchRuntime(platform, RUNTIMES)
  const path = join(BINARIES, platform.name, binaryName(platform))
  rmSync(join(BINARIES, platform.name), { recursive: true, force: true })
  const target = [`--target=${platform.target}`, `--compile-executable-path=${runtime}`, '--outfile', path]
  const order = `--bytecode-order=${bytecodeOrder}`
  await compileBinary([order, ...target])
  const binary = readFileSync(path)
  if (!platform.name.startsWith('darwin') || isSignatureValid(binary)) return binary
  const signed = signAdHoc(binary, 'atoll')
  writeFileSync(path, signed)
  return signed
}

function writeArchive(platform: Platform, binary: Buffer): string {
  const folder = `atoll-${version}-${platform.name}`
  const read = (path: string) => readFileSync(join(ROOT, path))
  const files: Entry[] = [
    { path: binaryName(platform), content: binary, isExecutable: true },
    { path: 'LICENSE', content: read('LICENSE') },
    { path: 'README.md', content: read('README.md') },
    { path: 'THIRD_PARTY_LICENSES.txt', content: Buffer.from(licenses) },
  ]
  if (platform.name.startsWith('linux'))
    files.push({ path: 'atoll.service', content: read('docs/operations/deploy/atoll.service') })
  const entries = files.map((file) => ({ ...file, path: `${folder}/${file.path}` }))
  const path = join(OUTPUT, `${folder}.${isWindows(platform) ? 'zip' : 'tar.gz'}`)
  writeFileSync(path, isWindows(platform) ? createZip(entries, time) : createTarGz(entries, time))
  return path
}

/** Writes the hashes as `sha256sum --check` reads them. */
function writeChecksums() {
  const files = [...new Bun.Glob('*').scanSync(OUTPUT)].sort()
  const lines = files.map((file) => {
    const hash = createHash('sha256').update(readFileSync(join(OUTPUT, file)))
    return `${hash.digest('hex')}  ${file}\n`
  })
  writeFileSync(join(OUTPUT, 'SHA256SUMS'), lines.join(''))
}
