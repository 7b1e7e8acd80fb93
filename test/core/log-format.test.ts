// engine: sqlite
import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { formatLogAs, log, logError, logOutput, setLogLevel } from '../../src/core/log'
import { LogQuota } from '../../src/core/log-quota'
import { toPrettyLine } from '../../src/core/pretty-line'
import * as stderr from '../../src/core/stderr'
import { runInTrace } from '../../src/core/trace'

let output: ReturnType<typeof spyOn<typeof logOutput, 'write'>>
beforeEach(() => {
  output = spyOn(logOutput, 'write')
})
afterEach(() => {
  output.mockRestore()
  formatLogAs('json')
  setLogLevel('error')
})
const time = '2030-01-31T12:00:00.000Z'
const clock = new Date(time).toTimeString().slice(0, 8)

describe('the format pretty', () => {
  test('a line of a request shows method, route, status, and the other fields behind', () => {
    const line = {
      level: 'info',
      time,
      requestId: 'r-1',
      tenant: 'acme',
      method: 'GET',
      route: '/api/me',
      status: 200,
      ms: 1.5,
    }
    expect(toPrettyLine(JSON.stringify(line), false)).toBe(
      `${clock} INFO  GET /api/me 200 ms=1.5 requestId=r-1 tenant=acme\n`,
    )
  })

  test('a line of an event or error shows its name and message, and a stack on lines of its own', () => {
    const line = {
      level: 'error',
      time,
      what: 'JOB_FAILED',
      message: 'Look.',
      job: { n: 1 },
      cause: 'Error: x\n  at y',
    }
    expect(toPrettyLine(JSON.stringify(line), false)).toBe(
      `${clock} ERROR JOB_FAILED  Look. job={"n":1}\n    Error: x\n      at y\n`,
    )
  })

  test('control characters of callers do not reach the terminal, and colors are ours alone', () => {
    const line = { level: 'warn', time, event: 'x', message: 'a\u001b[2Jb\u009b', note: '\u001b', cause: 'c\u0007\r' }
    expect(toPrettyLine(JSON.stringify(line), false)).not.toMatch(/[^\P{Cc}\n]/u)
    expect(toPrettyLine(JSON.stringify(line), true)).toContain('\u001b[33mWARN \u001b[0m')
  })

  test('formatLogAs chooses what is written to standard error', () => {
    output.mockRestore()
    const written = spyOn(stderr, 'writeLine').mockImplementation(() => {})
    setLogLevel('info')
    for (const format of ['pretty', 'json'] as const) {
      formatLogAs(format)
      log.info({ event: 'hello' })
    }
    expect(written.mock.calls.map(([line]) => line)).toEqual([
      expect.stringMatching(/INFO .*hello/),
      expect.stringMatching(/^\{.*"event":"hello"\}\n$/),
    ])
    written.mockRestore()
  })
})

describe('secrets in the log', () => {
  test('fields that hold secrets are replaced, also within other fields, and others are not', () => {
    const lines: string[] = []
    output.mockImplementation((line) => void lines.push(line))
    const headers = { authorization: 'Bearer s3cret', cookie: 's3cret', 'x-api-key': 's3cret', host: 'acme' }
    const more = {
      token: 's3cret',
      apiKey: 's3cret',
      request: { headers },
      nested: { password: 's3cret', name: 'ada' },
      deep: { deeper: { deepest: { secret: 's3cret' } } },
    }
    logError('X_FAILED', more)
    expect(lines.join()).not.toContain('s3cret')
    expect(JSON.parse(lines[0]!)).toMatchObject({
      token: '[redacted]',
      request: { headers: { authorization: '[redacted]', host: 'acme' } },
      nested: { password: '[redacted]', name: 'ada' },
    })
    expect(headers.cookie).toBe('s3cret')
  })
})

test('the log writes numbers of any size, and omits undefined values', () => {
  const lines: string[] = []
  output.mockImplementation((line) => void lines.push(line))
  logError('X_FAILED', { size: 2n ** 64n, token: undefined, nothing: null })
  expect(JSON.parse(lines[0]!)).toEqual({
    ...{ level: 'error', time: expect.any(String), what: 'X_FAILED' },
    ...{ size: '18446744073709551616', nothing: null },
  })
})

test('the log omits lines below its level, and all lines when silent', () => {
  output.mockImplementation(() => {})
  for (const level of ['debug', 'info', 'warn', 'error', 'silent'] as const) {
    setLogLevel(level)
    log.info({ event: 'x' })
    log.warn({ event: 'x' })
    log.error({ event: 'x' })
  }
  expect(output.mock.calls.map(([line]) => JSON.parse(line).level).join(' ')).toBe(
    'info warn error info warn error warn error error',
  )
})

test('every line that is logged within a trace names it', () => {
  const lines: string[] = []
  output.mockImplementation((line) => void lines.push(line))
  runInTrace({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), flags: 1 }, () => logError('X_FAILED'))
  logError('X_FAILED')
  expect(lines.map((line) => JSON.parse(line).traceId)).toEqual(['a'.repeat(32), undefined])
})

test('a LogQuota lets a number of lines through within a minute, and then tells how many it left out', () => {
  const clock = spyOn(performance, 'now').mockReturnValue(1_000)
  const quota = new LogQuota(2)
  expect([quota.take(), quota.take(), quota.take(), quota.take()]).toEqual([0, 0, undefined, undefined])
  clock.mockReturnValue(62_000)
  expect([quota.take(), quota.take()]).toEqual([2, 0])
  clock.mockRestore()
})

test('a LogQuota leaves lines for other tenants when one of them has had its part', () => {
  const quota = new LogQuota(3, 2)
  expect(['a', 'a', 'a', 'b', 'b'].map((tenant) => quota.take(tenant))).toEqual([0, 0, undefined, 1, undefined])
})
