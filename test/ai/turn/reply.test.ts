// engine: sqlite
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readChunks } from '../../../src/ai/sources/sse-chunks'
import { MalformedReply } from '../../../src/ai/turn/errors'
import type { Members } from '../../../src/ai/turn/provider-members'
import { type CompletionChunk, type ModelParams, ReplyBuilder } from '../../../src/ai/turn/reply'
import { checkProperty } from '../../property-runner'
import { errorOf } from '../../rejections'

type CallPiece = { index?: unknown; id?: unknown; name?: string; arguments?: unknown; [member: string]: unknown }
type ExpectedCall = [id: string, name: string, input: string]

const OFFERED = ['get_weather', 'get_weather_forecast', 'go', 'gogo', 'ping']
const params: ModelParams = { model: 'm', messages: [] }

const toCallDelta = ({ name, arguments: text, ...others }: CallPiece) => ({
  ...others,
  ...((name !== undefined || text !== undefined) && {
    function: { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) },
  }),
})

async function assemble(deltas: object[], finish: string | null = 'tool_calls') {
  const reply = new ReplyBuilder(OFFERED)
  const chunks = deltas.map((delta) => ({ choices: [{ delta, finish_reason: null }] }) as CompletionChunk)
  await reply.addChunks([...chunks, { choices: [{ delta: {}, finish_reason: finish }] }], () => {})
  return reply.toReply(params)
}

const weather = '{"city":"Oslo"}'
const [head, tail] = ['{"city":', '"Oslo"}']

/** Each row: what a server sends, one list of pieces for each chunk, and the calls that it means. */
const streams: [string, CallPiece[][], ExpectedCall[]][] = [
  [
    'as specified: index in each piece, id and name in the first',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: '' }],
      [{ index: 0, arguments: head }],
      [{ index: 0, arguments: tail }],
      [{ index: 1, id: 'b', name: 'ping', arguments: '' }],
      [{ index: 1, arguments: '{}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{}'],
    ],
  ],
  [
    'calls whose pieces take turns',
    [
      [
        { index: 0, id: 'a', name: 'get_weather' },
        { index: 1, id: 'b', name: 'get_weather' },
      ],
      [
        { index: 0, arguments: head },
        { index: 1, arguments: '{"city":"Bo' },
      ],
      [
        { index: 1, arguments: 'nn"}' },
        { index: 0, arguments: tail },
      ],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'get_weather', '{"city":"Bonn"}'],
    ],
  ],
  [
    'several whole calls under one index, with ids',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: weather }],
      [{ index: 0, id: 'b', name: 'get_weather', arguments: '{"city":"Bonn"}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'get_weather', '{"city":"Bonn"}'],
    ],
  ],
  [
    'several calls in pieces under one index, with ids in the first pieces',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: '' }],
      [{ index: 0, arguments: head }],
      [{ index: 0, arguments: tail }],
      [{ index: 0, id: 'b', name: 'ping', arguments: '' }],
      [{ index: 0, arguments: '{"n":' }],
      [{ index: 0, arguments: '1}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{"n":1}'],
    ],
  ],
  [
    'several calls under one index without ids',
    [
      [{ index: 0, name: 'get_weather', arguments: head }],
      [{ index: 0, arguments: tail }],
      [{ index: 0, name: 'ping', arguments: '{}' }],
      [{ index: 0, name: 'ping', arguments: '{"n":1}' }],
    ],
    [
      ['', 'get_weather', weather],
      ['', 'ping', '{}'],
      ['', 'ping', '{"n":1}'],
    ],
  ],
  [
    'calls without arguments under one index, without ids',
    [[{ index: 0, name: 'ping', arguments: '' }], [{ index: 0, name: 'go', arguments: '' }]],
    [
      ['', 'ping', ''],
      ['', 'go', ''],
    ],
  ],
  [
    'no index: a new id begins a call',
    [
      [{ id: 'a', name: 'get_weather', arguments: head }],
      [{ arguments: tail }],
      [{ id: 'b', name: 'ping', arguments: '{}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{}'],
    ],
  ],
  [
    'no index and no id: a name begins a call',
    [[{ name: 'get_weather', arguments: head }], [{ arguments: tail }], [{ name: 'ping', arguments: '{}' }]],
    [
      ['', 'get_weather', weather],
      ['', 'ping', '{}'],
    ],
  ],
  [
    'no index, the pieces of several calls beside each other',
    [
      [
        { id: 'a', name: 'get_weather' },
        { id: 'b', name: 'ping' },
      ],
      [{ arguments: weather }, { arguments: '{"n":1}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{"n":1}'],
    ],
  ],
  [
    'no index, equal calls beside each other',
    [
      [
        { name: 'ping', arguments: '' },
        { name: 'ping', arguments: '' },
      ],
    ],
    [
      ['', 'ping', ''],
      ['', 'ping', ''],
    ],
  ],
  [
    'the index is null, or text',
    [
      [{ index: null, id: 'a', name: 'get_weather', arguments: head }],
      [{ index: null, arguments: tail }],
      [{ index: '1', id: 'b', name: 'ping', arguments: '{"n"' }],
      [{ index: '1', arguments: ':1}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{"n":1}'],
    ],
  ],
  [
    'the index comes late',
    [
      [{ id: 'a', name: 'get_weather' }],
      [{ index: 0, arguments: head }],
      [{ index: 0, arguments: tail }],
      [{ index: 1, id: 'b', name: 'ping', arguments: '{}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{}'],
    ],
  ],
  [
    'head and tail under different indexes',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: '' }],
      [{ index: 1, arguments: head }],
      [{ index: 2, arguments: tail }],
    ],
    [['a', 'get_weather', weather]],
  ],
  [
    'head and tail under different indexes, with the id in both',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: head }],
      [{ index: 1, id: 'a', arguments: tail }],
      [{ index: 2, id: 'b', name: 'ping', arguments: '{}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{}'],
    ],
  ],
  [
    'indexes that begin at another number, with gaps',
    [
      [{ index: 3, id: 'a', name: 'get_weather', arguments: weather }],
      [{ index: 900, id: 'b', name: 'ping', arguments: '{}' }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', '{}'],
    ],
  ],
  [
    'id and name in each piece',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: '' }],
      [{ index: 0, id: 'a', name: 'get_weather', arguments: head }],
      [{ index: 0, id: 'a', name: 'get_weather', arguments: tail }],
    ],
    [['a', 'get_weather', weather]],
  ],
  [
    'empty texts for id and name in later pieces',
    [[{ index: 0, id: 'a', name: 'get_weather', arguments: head }], [{ index: 0, id: '', name: '', arguments: tail }]],
    [['a', 'get_weather', weather]],
  ],
  [
    'one id for all calls',
    [
      [{ index: 0, id: 'x', name: 'get_weather', arguments: head }],
      [{ index: 1, id: 'x', name: 'get_weather', arguments: '{"city":"Bo' }],
      [{ index: 0, id: 'x', arguments: tail }],
      [{ index: 1, id: 'x', arguments: 'nn"}' }],
    ],
    [
      ['x', 'get_weather', weather],
      ['x', 'get_weather', '{"city":"Bonn"}'],
    ],
  ],
  [
    'the id comes late',
    [[{ index: 0, name: 'get_weather' }], [{ index: 0, id: 'a', arguments: head }], [{ index: 0, arguments: tail }]],
    [['a', 'get_weather', weather]],
  ],
  ['the id is a number', [[{ index: 0, id: 7, name: 'ping', arguments: '{}' }]], [['7', 'ping', '{}']]],
  [
    'the name comes after the id, in pieces',
    [
      [{ index: 0, id: 'a' }],
      [{ index: 0, name: 'get_' }],
      [{ index: 0, name: 'weather' }],
      [{ index: 0, name: '_forecast', arguments: '' }],
      [{ index: 0, arguments: weather }],
    ],
    [['a', 'get_weather_forecast', weather]],
  ],
  [
    'the name as far as it is known',
    [
      [{ index: 0, id: 'a', name: 'get' }],
      [{ index: 0, name: 'get_wea' }],
      [{ index: 0, name: 'get_weather', arguments: weather }],
    ],
    [['a', 'get_weather', weather]],
  ],
  [
    'a name that repeats itself',
    [[{ index: 0, id: 'a', name: 'go' }], [{ index: 0, name: 'go' }], [{ index: 0, arguments: '{}' }]],
    [['a', 'gogo', '{}']],
  ],
  [
    'a name that was not offered, in pieces',
    [[{ index: 0, id: 'a', name: 'send_' }], [{ index: 0, name: 'mail', arguments: '{}' }]],
    [['a', 'send_mail', '{}']],
  ],
  [
    'arguments as an object',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: { city: 'Oslo' } }],
      [{ index: 1, id: 'b', name: 'ping', arguments: {} }],
    ],
    [
      ['a', 'get_weather', weather],
      ['b', 'ping', ''],
    ],
  ],
  [
    'an empty object before the pieces of the arguments',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: {} }],
      [{ index: 0, arguments: head }],
      [{ index: 0, arguments: tail }],
    ],
    [['a', 'get_weather', weather]],
  ],
  [
    'null for the arguments of a call without any',
    [[{ index: 0, id: 'a', name: 'ping', arguments: null }]],
    [['a', 'ping', '']],
  ],
  [
    'the whole arguments again at the end',
    [
      [{ index: 0, id: 'a', name: 'get_weather', arguments: head }],
      [{ index: 0, arguments: tail }],
      [{ index: 0, arguments: weather }],
      [{ index: 0, id: 'a', name: 'get_weather', arguments: weather }],
    ],
    [['a', 'get_weather', weather]],
  ],
  [
    'empty pieces',
    [[{}], [{ index: 0, id: 'a', name: 'ping', arguments: '{}' }], [{ index: 5 }]],
    [['a', 'ping', '{}']],
  ],
]

test.each(streams)('tool calls are put together: %s', async (_, pieces, expected) => {
  const { calls } = await assemble(pieces.map((list) => ({ tool_calls: list.map(toCallDelta) })))
  expect(calls.map(({ id, function: { name, arguments: text } }) => [id, name, text])).toEqual(expected)
})

test('a single call may be no list', async () => {
  const { calls } = await assemble([{ tool_calls: { id: 'a', function: { name: 'ping', arguments: '{}' } } }])
  expect(calls).toHaveLength(1)
})

const contents: [string, object[], { text: string; own: Members }][] = [
  ['text', [{ content: 'Hello ' }, { content: 'there' }], { text: 'Hello there', own: {} }],
  ['null', [{ content: null }, { content: 'Hi' }], { text: 'Hi', own: {} }],
  ['a refusal', [{ refusal: 'No, ' }, { refusal: 'thanks.' }], { text: 'No, thanks.', own: {} }],
  [
    'parts of text',
    [{ content: [{ type: 'text', text: 'Hello ' }] }, { content: [{ type: 'text', text: 'there' }] }],
    { text: 'Hello there', own: {} },
  ],
  [
    'parts of thinking and text',
    [
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Let me ' }] }] },
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'see.' }] }] },
      { content: 'It is ' },
      { content: [{ type: 'text', text: 'noon.' }] },
    ],
    {
      text: 'It is noon.',
      own: {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Let me see.' }] },
          { type: 'text', text: 'It is noon.' },
        ],
      },
    },
  ],
  [
    'thinking in a field of its own',
    [{ reasoning_content: 'Let me ' }, { reasoning_content: 'see.' }, { content: 'Noon.', reasoning_content: null }],
    { text: 'Noon.', own: { reasoning_content: 'Let me see.' } },
  ],
  [
    'details of thinking, with indexes and a signature',
    [
      { reasoning_details: [{ type: 'reasoning.text', index: 0, format: 'v1', text: 'Let me ' }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 0, format: 'v1', text: 'see.' }] },
      { reasoning_details: [{ type: 'reasoning.text', index: 0, format: 'v1', signature: 'sig' }] },
      { reasoning_details: [{ type: 'reasoning.encrypted', index: 1, data: 'xyz' }] },
      { content: 'Noon.' },
    ],
    {
      text: 'Noon.',
      own: {
        reasoning_details: [
          { type: 'reasoning.text', index: 0, format: 'v1', text: 'Let me see.', signature: 'sig' },
          { type: 'reasoning.encrypted', index: 1, data: 'xyz' },
        ],
      },
    },
  ],
  [
    'blocks of thinking, each with a signature at its end',
    [
      { thinking_blocks: [{ type: 'thinking', thinking: 'Let me ', signature: '' }] },
      { thinking_blocks: [{ type: 'thinking', thinking: 'see.' }] },
      { thinking_blocks: [{ type: 'thinking', thinking: '', signature: 'one' }] },
      { thinking_blocks: [{ type: 'thinking', thinking: 'So.', signature: 'two' }] },
      { content: 'Noon.' },
    ],
    {
      text: 'Noon.',
      own: {
        thinking_blocks: [
          { type: 'thinking', thinking: 'Let me see.', signature: 'one' },
          { type: 'thinking', thinking: 'So.', signature: 'two' },
        ],
      },
    },
  ],
]

test.each(contents)('the content of an answer is put together: %s', async (_, deltas, { text, own }) => {
  const reply = await assemble(deltas, 'stop')
  expect([reply.content, reply.own.message]).toEqual([text, own])
})

test('members of calls that only the provider knows are kept beside them', async () => {
  const { calls, own } = await assemble([
    { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'ping', arguments: '', strict: true } }] },
    {
      tool_calls: [
        { index: 0, extra_content: { google: { thought_signature: 'abc' } }, function: { arguments: '{}' } },
      ],
    },
  ])
  expect(calls).toEqual([{ id: 'a', type: 'function', function: { name: 'ping', arguments: '{}' } }])
  expect(own.calls).toEqual([{ extra_content: { google: { thought_signature: 'abc' } }, function: { strict: true } }])
})

test('an answer that ends amid a call, without a finish reason or at its limit, is malformed', async () => {
  const begun = [{ tool_calls: [{ index: 0, id: 'a', function: { name: 'get_weather', arguments: head } }] }]
  expect(await errorOf(assemble(begun, null))).toBeInstanceOf(MalformedReply)
  expect((await errorOf(assemble(begun, 'length'))).message).toContain('cut amid a tool call')
})

/** Cuts a text into pieces at random, which may be empty. */
const cut = (text: string, random: () => number): string[] => {
  if (!text.length || random() < 0.3) return [text]
  const at = Math.floor(random() * (text.length + 1))
  return [...cut(text.slice(0, at), random), ...cut(text.slice(at), random)]
}

const callArbitrary = fc.record({
  name: fc.constantFrom(...OFFERED),
  input: fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
  signature: fc.option(fc.string({ minLength: 1, maxLength: 10 })),
})
const replyArbitrary = fc.record({
  text: fc.string({ maxLength: 30, unit: 'grapheme' }),
  thinking: fc.string({ maxLength: 30, unit: 'grapheme' }),
  calls: fc.array(callArbitrary, { maxLength: 4 }),
  hasIndexes: fc.boolean(),
  repeatsIds: fc.boolean(),
  takesTurns: fc.boolean(),
  seed: fc.infiniteStream(fc.integer({ min: 0, max: 999 })),
})

test('a stream that is split anywhere, in its texts and between its bytes, always gives the same answer', async () => {
  await checkProperty(
    300,
    fc.asyncProperty(replyArbitrary, async ({ seed, text, thinking, ...plan }) => {
      const random = () => (seed.next().value as number) / 1_000
      const calls = plan.calls.map((call, n) => ({ ...call, id: `call_${n}`, text: JSON.stringify(call.input) }))
      const piecesOfCalls = calls.map(({ id, name, text, signature }, index) => {
        const names = cut(name, random)
        const head = names.map((piece, n) => ({
          ...((!n || plan.repeatsIds) && { id, type: 'function' }),
          function: { name: piece },
        }))
        const tail = cut(text, random).map((piece) => ({
          ...(plan.repeatsIds && { id }),
          function: { arguments: piece },
        }))
        const end = signature === null ? [] : [{ ...(plan.repeatsIds && { id }), extra: { signature } }]
        return [...head, ...tail, ...end].map((piece) => ({ ...(plan.hasIndexes && { index }), ...piece }))
      })
      const ordered =
        plan.takesTurns && plan.hasIndexes
          ? Array.from({ length: Math.max(0, ...piecesOfCalls.map((one) => one.length)) }, (_, n) =>
              piecesOfCalls.flatMap((one) => one[n] ?? []),
            ).flat()
          : piecesOfCalls.flat()
      const deltas: object[] = [
        ...cut(thinking, random).map((reasoning_content) => ({ reasoning_content })),
        ...cut(text, random).map((content) => ({ content })),
        ...ordered.map((piece) => ({ tool_calls: [piece] })),
      ]
      const lineEnd = ['\n', '\r\n'][Math.floor(random() * 2)]!
      const events = [...deltas, {}].map((delta, n) => ({
        choices: [{ index: 0, delta, finish_reason: n === deltas.length ? 'stop' : null }],
      }))
      const body = `${events.map((event) => `data: ${JSON.stringify(event)}${lineEnd}${lineEnd}`).join('')}data: [DONE]`
      const bytes = Buffer.from(body)
      const network = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; ) {
            const end = at + 1 + Math.floor(random() * 40)
            controller.enqueue(bytes.subarray(at, end))
            at = end
          }
          controller.close()
        },
      })
      const builder = new ReplyBuilder(OFFERED)
      const streamed: string[] = []
      for await (const chunks of readChunks(network))
        await builder.addChunks(chunks as CompletionChunk[], (words) => void streamed.push(...words))
      const reply = builder.toReply(params)
      expect(reply.content).toBe(text.replaceAll('\0', '').toWellFormed())
      expect(streamed.join('')).toBe(text)
      expect(reply.calls).toEqual(
        calls.map(({ id, name, text }) => ({ id, type: 'function' as const, function: { name, arguments: text } })),
      )
      expect(reply.own.message).toEqual(thinking.includes('\0') ? {} : { reasoning_content: thinking })
      expect(reply.own.calls).toEqual(
        calls.map(({ signature }) => (signature === null ? {} : { extra: { signature } })),
      )
    }),
  )
})

test('a chunk with the whole message is taken, and ignored after pieces', async () => {
  const message = { content: 'Hello there', tool_calls: [{ id: 'a', function: { name: 'ping', arguments: '{}' } }] }
  const whole: CompletionChunk = { choices: [{ message, finish_reason: 'stop' }] }
  const toReply = async (chunks: CompletionChunk[]) => {
    const reply = new ReplyBuilder(OFFERED)
    await reply.addChunks(chunks, () => {})
    const { content, calls } = reply.toReply(params)
    return [content, calls.length]
  }
  expect(await toReply([whole])).toEqual(['Hello there', 1])
  const pieces = ['Hello ', 'there'].map((content) => ({ choices: [{ delta: { content } }] }))
  expect(await toReply([...pieces, whole])).toEqual(['Hello there', 0])
})
