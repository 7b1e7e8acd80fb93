// engine: sqlite
import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const paths = [...new Glob('**/*.ts').scanSync('src')].filter((path) => !/^admin\/|\.d\.ts$/.test(path))
const sources = new Map(
  await Promise.all(paths.map(async (path) => [path, await Bun.file(`src/${path}`).text()] as const)),
)

/** How a file takes its turns. */
const SHARE = /new FairShare\(|costlyWork\.|withOutboundCall\(|withMailServer\(/

/** What says in the list below that the file itself takes turns. */
const TAKES_TURNS = 'takes turns'

/**
 * What costs much, and the files that may do it: each takes turns, or says why it needs none. A new one belongs into a
 * `FairShare`, or into `costlyWork` when it needs the thread (ADR 0100).
 */
const COSTLY: Record<string, { call: RegExp; files: Record<string, string> }> = {
  threads: {
    call: /new Worker\(/,
    files: {
      'content/sanitizer.ts': TAKES_TURNS,
      'tenancy/reader-threads.ts': 'called by readInThread only',
      'content/compiler-process.ts': 'a part of the process of content/compiler.ts',
      'lambdas/sandbox/process-main.ts': 'a part of the sandbox process',
      'storage/engines/sqlite/checkpoint-scheduler.ts': 'one thread for all tenants, a step of each in turn',
      'storage/engines/sqlite/file-check.ts': 'housekeeping, one tenant after the other',
      'storage/engines/sqlite/migration.ts': 'once for each tenant and version, a thread for each',
    },
  },
  processes: {
    call: /Bun\.spawn\(/,
    files: {
      'content/compiler.ts': TAKES_TURNS,
      'files/thumbnails/thumbnail-process.ts': TAKES_TURNS,
      'lambdas/sandbox/sandbox-process.ts': 'started by the pool only',
      'backups/command-process.ts': 'only the operator asks for it',
      'commands/supervisor.ts': 'the processes of the server itself',
    },
  },
  'sandbox processes': { call: /new SandboxProcess\(/, files: { 'lambdas/sandbox/pool.ts': TAKES_TURNS } },
  'reads in threads': {
    call: /(?<!function )readInThread\(/,
    files: {
      'entities/query/threaded-reads.ts': TAKES_TURNS,
      'entities/search/word-reads.ts':
        'under a lease, five hundred documents at a time, as fast as turns to write them come',
    },
  },
  'password hashing': { call: /Bun\.password\./, files: { 'accounts/passwords.ts': TAKES_TURNS } },
  'outgoing calls': {
    call: /(?<!function )sendOutboundRequest\(/,
    files: {
      'core/http-client.ts': TAKES_TURNS,
      'core/http-stream.ts': 'a stream lasts as long as it is read, so those who open one count it',
      'storage/object-store/store-connection.ts': 'the store belongs to the installation, and its users take turns',
    },
  },
  'outgoing streams': {
    call: /(?<!function )fetchExternalStream\(/,
    files: {
      'plugins/proxy.ts': TAKES_TURNS,
      'ai/sources/source-request.ts': 'completions are counted, and indexing is a job',
    },
  },
  'mail servers': {
    call: /(?<!function )(createSmtpTransport|openTransport|sendVia)\(/,
    files: {
      'platform/mail/smtp.ts': TAKES_TURNS,
      'connections/kinds/email.ts': TAKES_TURNS,
      'integrations/targets/email.ts': TAKES_TURNS,
    },
  },
  'orders of certificates': {
    call: /(?<!function )orderCertificate\(/,
    files: { 'tls/certificate-orders.ts': TAKES_TURNS },
  },
  'comparing of vectors': { call: /(?<!function )findNearest\(/, files: { 'ai/knowledge/retrieval.ts': TAKES_TURNS } },
  'loops over tenants': {
    call: /(?<!function\*? )\b(listTenantIds|eachOpenServedSince|listServedSince)\(/,
    files: {
      'jobs/runner.ts': TAKES_TURNS,
      'jobs/housekeeping.ts': 'one tenant after the other, the next one after a second at the latest',
      'lambdas/prewarmer.ts': 'asks one tenant after the other, until one has lambdas',
    },
  },
}

const isCommand = (path: string) => path.startsWith('commands/')

test.each(Object.entries(COSTLY))('only files that take turns, or say why not, have %s', (_, { call, files }) => {
  const users = [...sources].filter(([path, source]) => call.test(source) && !(isCommand(path) && !(path in files)))
  expect(users.map(([path]) => path).sort()).toEqual(Object.keys(files).sort())
  for (const [path, source] of users) if (files[path] === TAKES_TURNS) expect(source, path).toMatch(SHARE)
})

/** What waits or is refused without a `FairShare`, and why. */
const OWN_QUEUES: Record<string, string> = {
  'core/fair-share.ts': 'the mechanism',
  'core/busy.ts': 'the problem itself',
  'tenancy/live-processes.ts': 'waits for other processes',
  'tenancy/placement.ts': 'the tenant is moving',
  'tenancy/reader-threads.ts': 'the client has gone',
  'workspaces/search.ts': 'the client has gone',
  'accounts/work-turns.ts': 'the client has gone',
  'entities/query/fair-reads.ts': 'the client has gone',
  'http/idempotency/execution.ts': 'the same request is under way',
  'content/compiler.ts': 'the process was ended from outside',
  'files/thumbnails/thumbnail-process.ts': 'the process was ended from outside',
  'plugins/service-account.ts': 'another request was faster',
}

test('nothing outside the storage refuses work with BUSY for lack of a place but FairShare', () => {
  const users = [...sources].filter(
    ([path, source]) => !path.startsWith('storage/') && /new Busy\(|class Busy\b/.test(source),
  )
  expect(users.map(([path]) => path).sort()).toEqual(Object.keys(OWN_QUEUES).sort())
})

test('nothing but the mechanism and the storage keeps a queue of callbacks or a count of what tenants have under way', () => {
  const own =
    /Map<string, \(\(\) => void\)\[\]>|\w*(counts?|running|waiting)(ByTenant|ByCaller)\b|(requests?|streams?|calls?)Counts? = new Map/i
  const users = [...sources].filter(([path, source]) => !path.startsWith('storage/') && own.test(source))
  expect(users.map(([path]) => path)).toEqual([])
})
