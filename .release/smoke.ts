import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { isSignatureValid } from './mach-signature'
import type { Platform } from './platforms'

/** The id of a user that may do nothing. */
const NOBODY = 65_534
const FIRST_START = join(import.meta.dir, 'first-start.ts')

/**
 * Starts a binary as a new user does, and says in a few words what was checked. Binaries of other systems are only
 * looked at.
 * @throws Error when the binary does not work
 */
export async function smokeTest(platform: Platform, binary: string): Promise<string> {
  const path = resolve(binary)
  if (platform.name.startsWith('darwin')) return checkMac(path)
  if (platform.name.startsWith('windows')) return checkWindows(path)
  const starters = findStarters(platform)
  if (!starters.length) return `not started: this machine has nothing that runs ${platform.name}`
  const results: string[] = []
  for (const { name, command } of starters) results.push(`${name}: ${await startAsNobody(path, command)}`)
  return results.join('; ')
}

async function checkMac(path: string) {
  if (!isSignatureValid(Buffer.from(await Bun.file(path).arrayBuffer())))
    throw new Error(`The signature of ${path} is invalid.`)
  return 'not started; it is a Mach-O file, and each page has the hash that its signature names'
}

function checkWindows(path: string) {
  const bytes = Buffer.alloc(4096)
  const file = openSync(path, 'r')
  readSync(file, bytes)
  closeSync(file)
  const header = bytes.readUInt32LE(60)
  const X64 = 0x8664
  if (bytes.toString('latin1', header, header + 4) !== 'PE\0\0' || bytes.readUInt16LE(header + 4) !== X64)
    throw new Error(`${path} is not a program of Windows on x64.`)
  return 'not started; it is a program of Windows on x64'
}

/** Tells whether the C++ library is where Alpine Linux has it, or where LD_LIBRARY_PATH names it. */
const hasMuslCpp = () =>
  ['/usr/lib', ...(process.env.LD_LIBRARY_PATH?.split(':') ?? [])].some((folder) =>
    existsSync(join(folder, 'libstdc++.so.6')),
  )

/** A processor of 2008, which has SSE4.2 but not AVX. */
const OLD_PROCESSOR = 'Nehalem'

/** How a Linux binary can be started here: what precedes its path. */
type Starter = { name: string; command: string[] }

/** Returns how a Linux binary can be started here, with an emulator where its processor is another one. */
function findStarters({ name }: Platform): Starter[] {
  const [system, processor, libc] = name.split('-')
  if (system !== process.platform) return []
  const architecture = processor === 'arm64' ? 'aarch64' : 'x86_64'
  const isMusl = libc === 'musl'
  const emulator = Bun.which(`qemu-${architecture}-static`)
  if (processor !== process.arch) {
    const libraries = `/usr/${architecture}-linux-gnu`
    const isPossible = emulator && !isMusl && existsSync(libraries)
    return isPossible ? [{ name: 'emulated', command: [emulator, '-L', libraries] }] : []
  }
  if (isMusl && !(existsSync(`/lib/ld-musl-${architecture}.so.1`) && hasMuslCpp())) return []
  const old = { name: OLD_PROCESSOR, command: [emulator ?? '', '-cpu', OLD_PROCESSOR] }
  return [{ name: 'here', command: [] }, ...(emulator && architecture === 'x86_64' ? [old] : [])]
}

/** Tells whether this process may give a server less than it has itself. In a container, root may not. */
export const mayConfine = () =>
  process.getuid?.() === 0 &&
  ['unshare', 'setpriv', 'ip', 'mount'].every((name) => Bun.which(name)) &&
  Bun.spawnSync(['unshare', '--net', '--mount', 'true']).success

/** Runs a command without a network, as the user $3, where nothing but the folder $2 can be written. */
const CONFINEMENT = `
set -e
chown "$3" "$2"
ip link set lo up
mount --bind "$2" "$2"
mount -o remount,bind,ro /
shift 3
exec "$@"`

/**
 * Starts a server in an empty folder without a network, where nothing else can be written, as a user without rights.
 * Where this process may not do that, it starts the server as it is itself.
 */
export async function startAsNobody(binary: string, starter: string[] = []): Promise<string> {
  const base = mkdtempSync(join(tmpdir(), 'atoll-smoke-'))
  try {
    // The folder of the binary may be closed to other users.
    const [program, data] = [join(base, 'atoll'), join(base, 'data')]
    copyFileSync(binary, program)
    chmodSync(base, 0o755)
    chmodSync(program, 0o755)
    mkdirSync(data)
    const isConfined = mayConfine()
    const namespaces = ['unshare', '--net', '--mount', 'sh', '-c', CONFINEMENT, 'sh', base, data, `${NOBODY}`]
    const asNobody = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--no-new-privs']
    const start = [process.execPath, FIRST_START, data]
    const server = [...(isConfined ? asNobody : []), ...starter, program]
    const child = Bun.spawn([...(isConfined ? namespaces : []), ...start, ...server], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (code) throw new Error(`${[...starter, binary].join(' ')} does not work.\n${out}${err}`)
    return `${out.trim()}${isConfined ? ', as nobody, without a network, on a read-only system' : ''}`
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}
