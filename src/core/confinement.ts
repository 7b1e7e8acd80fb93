import { dlopen, type Library, ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'

// The kernel enforces this confinement: foreign code that breaks out of its engine, or a picture that exploits a decoder,
// is in a process that can do nothing.

/** The steps of the confinement. Each is tried separately, because not every system supports all of them. */
export type ConfinementStep = 'user' | 'limits' | 'new-privileges' | 'files' | 'system-calls'

const NOBODY_ID = 65_534
const MAX_OPEN_FILES = 64

const [PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS] = [4, 38]
const RLIMITS: [resource: number, most: number][] = [
  [1, 0], // RLIMIT_FSIZE
  [4, 0], // RLIMIT_CORE
  [7, MAX_OPEN_FILES], // RLIMIT_NOFILE
]

// https://docs.kernel.org/userspace-api/landlock.html: the ABI version, and the access rights that it added.
const FILE_ACCESS = [
  [1, 0x1fff],
  [2, 1 << 13],
  [3, 1 << 14],
  [5, 1 << 15],
] as const
const [TCP_SINCE, TCP_RIGHTS, SCOPES_SINCE, SCOPE_RIGHTS] = [4, 0b11, 6, 0b11]
const [CREATE_RULESET, RESTRICT_SELF] = [444, 446]

/** System calls that open files or connections, or reach other processes and programs, by architecture. */
const SYSTEM_CALLS = {
  x64: {
    audit: 0xc000003e,
    seccomp: 317,
    clone: 56,
    refused: [
      ...[57, 58, 59, 322, 101, 310, 311], // fork, vfork, execve, execveat, ptrace, process_vm_readv, process_vm_writev
      ...[41, 42, 49, 50, 425], // socket, connect, bind, listen, io_uring_setup
      ...[2, 85, 257, 437, 304], // open, creat, openat, openat2, open_by_handle_at
      ...[76, 87, 263, 82, 264, 316], // truncate, unlink, unlinkat, rename, renameat, renameat2
    ],
  },
  arm64: {
    audit: 0xc00000b7,
    seccomp: 277,
    clone: 220,
    refused: [
      ...[221, 281, 117, 270, 271], // execve, execveat, ptrace, process_vm_readv, process_vm_writev
      ...[198, 203, 200, 201, 425], // socket, connect, bind, listen, io_uring_setup
      ...[56, 437, 265], // openat, openat2, open_by_handle_at
      ...[45, 35, 38, 276], // truncate, unlinkat, renameat, renameat2
    ],
  },
}
const CLONE3 = 435
const CLONE_THREAD = 0x10000
const [EPERM, ENOSYS] = [1, 38]
const [SET_MODE_FILTER, ALL_THREADS] = [1, 1]

const symbols = {
  prctl: { args: ['int', 'u64', 'u64', 'u64', 'u64'], returns: 'int' },
  setrlimit: { args: ['int', 'ptr'], returns: 'int' },
  setgroups: { args: ['u64', 'ptr'], returns: 'int' },
  setresgid: { args: ['u32', 'u32', 'u32'], returns: 'int' },
  setresuid: { args: ['u32', 'u32', 'u32'], returns: 'int' },
  syscall: { args: ['i64', 'u64', 'u64', 'u64', 'u64'], returns: 'i64' },
} as const
type Libc = Library<typeof symbols>['symbols']

/**
 * Irrevocably gives up what this process no longer needs: the user root, files, other programs and connections. Returns
 * the steps that failed. Only Linux is supported; elsewhere it does nothing and returns [].
 */
export function confineProcess(): ConfinementStep[] {
  if (process.platform !== 'linux') return []
  const steps: [ConfinementStep, (libc: Libc) => boolean][] = [
    ['limits', limitResources],
    ['new-privileges', disableNewPrivileges],
    ['files', denyFileAccess],
    ['user', dropRoot],
    // Last, because it synchronizes all threads, and thereby applies `new-privileges` to them.
    ['system-calls', filterSystemCalls],
  ]
  const libc = openLibc()
  return steps.filter(([, step]) => !libc || !tryStep(step, libc)).map(([name]) => name)
}

function tryStep(step: (libc: Libc) => boolean, libc: Libc): boolean {
  try {
    return step(libc)
  } catch {
    return false
  }
}

function openLibc(): Libc | undefined {
  for (const name of ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`])
    try {
      return dlopen(name, symbols).symbols
    } catch {
      // The next library is tried.
    }
}

/**
 * Forbids file writes, core dumps and many descriptors. Address space is not limited: the engine reserves far more than
 * it uses.
 */
const limitResources = ({ setrlimit }: Libc) =>
  RLIMITS.every(
    ([resource, limit]) => setrlimit(resource, ptr(new BigUint64Array([BigInt(limit), BigInt(limit)]))) === 0,
  )

/** No executed program gains privileges, and no process of the same user can read this one's memory. */
const disableNewPrivileges = ({ prctl }: Libc) =>
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) === 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) === 0

/** Denies files by path, and TCP (Landlock), in this thread and the threads that it starts. */
function denyFileAccess({ syscall }: Libc): boolean {
  const version = Number(syscall(CREATE_RULESET, 0, 0, 1, 0))
  if (version < 1) return false
  const files = FILE_ACCESS.filter(([since]) => version >= since).reduce((all, [, access]) => all | access, 0)
  const [tcp, scopes] = [version >= TCP_SINCE ? TCP_RIGHTS : 0, version >= SCOPES_SINCE ? SCOPE_RIGHTS : 0]
  const attributes = new BigUint64Array([files, tcp, scopes].map(BigInt))
  const size = version >= SCOPES_SINCE ? 24 : version >= TCP_SINCE ? 16 : 8
  const rules = Number(syscall(CREATE_RULESET, ptr(attributes), size, 0, 0))
  if (rules < 0) return false
  const isRestricted = Number(syscall(RESTRICT_SELF, rules, 0, 0, 0)) === 0
  closeSync(rules)
  return isRestricted
}

/** Becomes the user nobody. A process that is not root keeps its user. */
function dropRoot({ setgroups, setresgid, setresuid }: Libc): boolean {
  if (process.getuid?.() !== 0) return true
  const becomeNobody = () =>
    setresgid(NOBODY_ID, NOBODY_ID, NOBODY_ID) === 0 && setresuid(NOBODY_ID, NOBODY_ID, NOBODY_ID) === 0
  return setgroups(0, null) === 0 && becomeNobody()
}

type Instruction = [code: number, ifTrue: number, ifFalse: number, value: number]
const [LOAD, EQUALS, AT_LEAST, HAS, RETURN] = [0x20, 0x15, 0x35, 0x45, 0x06]
const [NUMBER_OFFSET, ARCHITECTURE_OFFSET, FIRST_ARGUMENT_OFFSET] = [0, 4, 16]
const [RETURN_ALLOW, RETURN_ERRNO] = [0x7fff0000, 0x00050000]
const X32_SYSCALL_BIT = 0x40000000 // the x32 ABI has other numbers for the same calls

/** Installs a filter in all threads (https://docs.kernel.org/userspace-api/seccomp_filter.html). */
function filterSystemCalls({ syscall }: Libc): boolean {
  const architecture = process.arch === 'x64' || process.arch === 'arm64' ? SYSTEM_CALLS[process.arch] : undefined
  if (!architecture) return false
  const program: Instruction[] = [
    [LOAD, 0, 0, ARCHITECTURE_OFFSET],
    [EQUALS, 1, 0, architecture.audit],
    [RETURN, 0, 0, RETURN_ERRNO | EPERM],
    [LOAD, 0, 0, NUMBER_OFFSET],
    [AT_LEAST, 0, 1, X32_SYSCALL_BIT],
    [RETURN, 0, 0, RETURN_ERRNO | EPERM],
    // A filter cannot read the flags of `clone3`; after ENOSYS threads are started by `clone`.
    [EQUALS, 0, 1, CLONE3],
    [RETURN, 0, 0, RETURN_ERRNO | ENOSYS],
    ...architecture.refused.flatMap((number): Instruction[] => [
      [EQUALS, 0, 1, number],
      [RETURN, 0, 0, RETURN_ERRNO | EPERM],
    ]),
    [EQUALS, 0, 3, architecture.clone],
    [LOAD, 0, 0, FIRST_ARGUMENT_OFFSET],
    [HAS, 1, 0, CLONE_THREAD],
    [RETURN, 0, 0, RETURN_ERRNO | EPERM],
    [RETURN, 0, 0, RETURN_ALLOW],
  ]
  const filter = new DataView(new ArrayBuffer(program.length * 8))
  for (const [n, [code, ifTrue, ifFalse, value]] of program.entries()) {
    filter.setUint16(n * 8, code, true)
    filter.setUint8(n * 8 + 2, ifTrue)
    filter.setUint8(n * 8 + 3, ifFalse)
    filter.setUint32(n * 8 + 4, value, true)
  }
  const filterProgram = new BigUint64Array([BigInt(program.length), BigInt(ptr(filter))])
  return Number(syscall(architecture.seccomp, SET_MODE_FILTER, ALL_THREADS, ptr(filterProgram), 0)) === 0
}
