// engine: sqlite
import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { createDescriptorCheck } from '../../src/operations/file-descriptors'
import { binaryPath } from '../fakes/binary'
import { apiCaller, createTempFolder, readMetric, startAtoll } from '../fakes/cli'
import { waitUntil } from '../wait-until'

test('the warning about file descriptors comes once, and again only after most of them were free', () => {
  const warnings: object[] = []
  const check = createDescriptorCheck((about) => warnings.push(about))
  const countAfter = (open: number | undefined, limit: number | undefined = 100) => {
    check(open, limit)
    return warnings.length
  }
  expect([10, 79, 80, 99, undefined, 61, 85].map((open) => countAfter(open))).toEqual([0, 0, 1, 1, 1, 1, 1])
  expect([60, 79, undefined].map((open) => countAfter(open))).toEqual([1, 1, 2])
  expect(warnings[0]).toEqual({
    what: 'FILE_DESCRIPTORS_LOW',
    open: 80,
    limit: 100,
    message: expect.stringMatching(/^80 of 100 file descriptors .*LimitNOFILE .* ATOLL_OPEN_TENANTS\.$/),
  })
  expect(warnings[1]).toMatchObject({ limit: 100, message: expect.stringMatching(/^All file descriptors are in use/) })
})

test('the warning about file descriptors comes when none is free, where the system tells no limit', () => {
  const warnings: object[] = []
  const check = createDescriptorCheck((about) => warnings.push(about))
  for (const open of [10, 100_000, undefined, undefined, 10]) check(open, undefined)
  expect(warnings).toMatchObject([{ message: expect.stringMatching(/^All file descriptors are in use/) }])
})

const prlimit = Bun.which('prlimit')

test.skipIf(!prlimit)(
  'a server whose clients take most of its file descriptors warns in its log and at /ready',
  async () => {
    const OPERATOR_TOKEN = 'the-operator-token-of-a-test'
    const env = { ATOLL_LOG_LEVEL: 'warn', ATOLL_OPERATOR_TOKEN: OPERATOR_TOKEN }
    const program = [prlimit!, '--nofile=300:300', binaryPath()]
    await using server = await startAtoll({ at: createTempFolder(), env, program })
    const operator = apiCaller(server.url, { authorization: `Bearer ${OPERATOR_TOKEN}` })
    const clients: Socket[] = []
    // The system passes a connection on when bytes have come.
    const beginRequest = () => {
      const client = connect(server.port, '127.0.0.1').on('error', () => {})
      client.write('GET /health HTTP/1.1\r\n')
      return client
    }
    try {
      const line = await waitUntil(async () => {
        if (clients.length < 250) clients.push(...Array.from({ length: 10 }, beginRequest))
        const { body } = await operator('GET', '/operator/logs?q=FILE_DESCRIPTORS_LOW')
        return body[0]
      })
      expect(line.text).toMatch(/2[4-9]\d of 300 file descriptors/)
      const { status, body } = await operator('GET', '/ready')
      expect([status, body.warnings]).toEqual([200, [expect.stringContaining('of 300 file descriptors')]])
      const limit = await readMetric(server.url, 'process_max_fds')
      expect(limit).toBe(300)
      expect(await readMetric(server.url, 'process_open_fds')).toBeGreaterThan(0.8 * limit)
    } finally {
      for (const client of clients) client.destroy()
    }
  },
)
