import { expect } from 'bun:test'
import { callApi, createTestTenant } from '../test-tenant'

export const cardComponent = (more: object = {}) => ({
  identifier: 'card',
  componentName: 'Card',
  description: 'Shows a person',
  content: `import React from 'react'
type Props = { name: string }
export const Card = ({ name }: Props) => <b className="card">{name}</b>
<style>
.card { color: red }
</style>
`,
  requiredProps: ['name'],
  ...more,
})

/** A tenant, and short ways to what its components are about. */
export async function createComponentsFixture() {
  const own = await createTestTenant()
  const editor = own.as('editor')
  return {
    ...own,
    editor,
    /** Makes a component of this content. */
    make: async (content: string, identifier = 'card') => {
      const { status, body } = await editor.post('/components', { identifier, content })
      expect([status, body.message]).toEqual([201, undefined])
      return body
    },
    /** The paths of its files, as strangers are told. */
    paths: async (identifier = 'card'): Promise<{ js: string; css: string }> =>
      (await own.stranger.get('/static')).body.find((one: { identifier: string }) => one.identifier === identifier),
    fetch: (path: string, headers: Record<string, string> = {}) => callApi('GET', `${own.origin}${path}`, { headers }),
  }
}

/** Folds `"xx"` into a text of twice the length at every step, at compile time. */
export const constantFoldingBomb = (steps: number) =>
  `enum E { a0 = 'xx'${Array.from({ length: steps }, (_, n) => `, a${n + 1} = a${n} + a${n}`).join('')} }`
