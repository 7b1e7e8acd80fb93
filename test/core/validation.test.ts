// engine: sqlite
import { expect, test } from 'bun:test'
import type { TSchema } from '@sinclair/typebox'
import { t } from 'elysia'
import { app } from '../../src/app'
import { kinds } from '../../src/connections/kinds/index'
import { ERROR_MESSAGE } from '../../src/core/schema-annotations'
import { textMatching } from '../../src/core/shapes'
import { FORMAT_MESSAGES, fieldNameOf, listFieldErrors } from '../../src/core/validation'
import { targets } from '../../src/integrations/targets/index'
import { triggers } from '../../src/integrations/triggers/index'
import { CouponData } from '../../src/payments/shapes'
import { ParsedEvent } from '../../src/payments/webhooks/shapes'
import { settingsShapes } from '../../src/platform/settings/tenant-settings'
import { Manifest } from '../../src/plugins/shapes'

/** Every shape that input is validated by. */
const shapes: [string, TSchema][] = [
  ...app.routes.flatMap(({ method, path, hooks }) =>
    (['body', 'query', 'params'] as const).flatMap((part): [string, TSchema][] =>
      hooks[part] ? [[`${part} of ${method} ${path}`, hooks[part] as TSchema]] : [],
    ),
  ),
  ...settingsShapes(),
  ...Object.entries({ ...triggers, ...targets }).map(([kind, { shape }]): [string, TSchema] => [kind, shape]),
  ...Object.entries(kinds).flatMap(([kind, { metadata, authentication }]): [string, TSchema][] => [
    [kind, metadata],
    [kind, authentication],
  ]),
  ...Object.entries({ Manifest, CouponData, SensibleEvent: ParsedEvent }),
]

const listNestedShapes = (shape: TSchema): TSchema[] => [
  shape,
  ...[
    ...Object.values<TSchema>(shape.properties ?? {}),
    ...Object.values<TSchema>(shape.patternProperties ?? {}),
    ...((shape.anyOf ?? []) as TSchema[]),
    ...(shape.items ? [shape.items as TSchema] : []),
  ].flatMap(listNestedShapes),
]

test('every pattern, every restriction of keys and every format in a shape has an error message without regex syntax', () => {
  let messageCount = 0
  for (const [name, root] of shapes)
    for (const shape of listNestedShapes(root)) {
      const names = Object.keys(shape.patternProperties ?? {}).filter((one) => one !== '^(.*)$')
      if (shape.pattern === undefined && !names.length && shape.format === undefined) continue
      messageCount++
      const message =
        (shape as { [ERROR_MESSAGE]?: string })[ERROR_MESSAGE] ??
        FORMAT_MESSAGES[shape.format as keyof typeof FORMAT_MESSAGES]
      expect(message, `${name}: ${shape.pattern ?? shape.format ?? names}`).toMatch(/^[A-Z].*\.$/)
      expect(message, name).not.toMatch(/[\\^$|]|\(\?/)
    }
  expect(messageCount).toBeGreaterThan(50)
})

const optional = t.Optional
test.each<[string, TSchema, unknown, [string, string][]]>([
  ['a missing required key once', t.Object({ name: t.String() }), {}, [['/name', 'name is required.']]],
  ['a body that is no object', t.Object({}), [], [['', 'Send a JSON object.']]],
  [
    'errors in several fields',
    t.Object({ a: t.Boolean(), b: t.Number() }),
    { a: 1 },
    [
      ['/b', 'b is required.'],
      ['/a', 'a must be true or false.'],
    ],
  ],
  [
    'an item of a list',
    t.Object({ tags: t.Array(t.String()) }),
    { tags: ['x', 1] },
    [['/tags/1', 'tags[1] must be text.']],
  ],
  [
    'a value that breaks two rules once',
    t.String({ minLength: 1, pattern: '^a' }),
    '',
    [['', 'The body must not be empty.']],
  ],
  [
    'a pattern that does not match',
    t.Object({ a: textMatching('^x$', 'Write an x.') }),
    { a: 'y' },
    [['/a', 'Write an x.']],
  ],
  [
    'a nullable value of a wrong type',
    t.Object({ a: t.Nullable(t.Number()) }),
    { a: 'y' },
    [['/a', 'a must be a number.']],
  ],
  [
    'a field inside a nullable object',
    t.Nullable(t.Object({ a: t.Number() })),
    { a: 'y' },
    [['/a', 'a must be a number.']],
  ],
  [
    'an unknown word of a union',
    t.Object({ a: t.Union([t.Literal('x'), t.Literal('y'), t.Literal('')]) }),
    { a: 'z' },
    [['/a', 'Unknown a. Use one of: x, y.']],
  ],
  ['a wrong literal', t.Object({ a: t.Literal('x') }), { a: 'z' }, [['/a', 'a must be "x".']]],
  [
    'a wrong optional literal',
    t.Object({ a: optional(t.Literal('x')) }),
    { a: 'z' },
    [['/a', 'a must be x or omitted.']],
  ],
  [
    'a value of none of several types',
    t.Union([t.String(), t.Array(t.String())]),
    5,
    [['', 'The body must be text or a list.']],
  ],
  [
    'an error within the matching type of a union',
    t.Union([t.String(), t.Array(t.String())]),
    [5],
    [['/0', '[0] must be text.']],
  ],
  [
    'an error within the variant of a chosen kind',
    t.Union([t.Object({ kind: t.Literal('a'), x: t.Number() }), t.Object({ kind: t.Literal('b'), y: t.Number() })]),
    { kind: 'b' },
    [['/y', 'y is required.']],
  ],
  [
    'an unknown kind',
    t.Union([t.Object({ kind: t.Literal('a') }), t.Object({ kind: t.Literal('b') })]),
    { kind: 'c' },
    [['/kind', 'Unknown kind. Use one of: a, b.']],
  ],
  [
    'a missing kind',
    t.Union([t.Object({ kind: t.Literal('a') }), t.Object({ kind: t.Literal('b') })]),
    {},
    [['/kind', 'kind is required.']],
  ],
  ['a number that is too small', t.Number({ minimum: 1 }), 0, [['', 'The body must be a number, at least 1.']]],
  [
    'a number that is too large',
    t.Number({ exclusiveMinimum: 0, maximum: 5 }),
    6,
    [['', 'The body must be a number above 0, at most 5.']],
  ],
  [
    'duplicate items',
    t.Array(t.String(), { uniqueItems: true }),
    ['x', 'x'],
    [['', 'The body must not contain the same item twice.']],
  ],
  [
    'too many keys',
    t.Record(t.String(), t.Any(), { maxProperties: 1 }),
    { a: 1, b: 2 },
    [['', 'The body must have at most 1 keys.']],
  ],
])('listFieldErrors reports %s', (_, shape, value, expected) => {
  expect(listFieldErrors(shape, value).map(({ path, message }) => [path, message])).toEqual(expected)
})

test('error paths are JSON pointers, field names use JavaScript notation, and long keys are cut', () => {
  expect(listFieldErrors(t.Record(t.String(), t.Number()), { 'a/b~c': '' })).toEqual([
    { path: '/a~1b~0c', message: 'a/b~c must be a number.' },
  ])
  expect(fieldNameOf('/fields/0/key')).toBe('fields[0].key')
  expect(fieldNameOf(`/${'x'.repeat(200)}`)).toBe(`${'x'.repeat(60)}…`)
})
