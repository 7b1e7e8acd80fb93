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

/** Creates a tenant with shortcuts to create components and read their files. */
export async function createComponentsFixture() {
  const testTenant = await createTestTenant()
  const editor = testTenant.as('editor')
  return {
    ...testTenant,
    editor,
    /** Creates a component with this content. */
    make: async (content: string, identifier = 'card') => {
      const { status, body } = await editor.post('/components', { identifier, content })
      expect([status, body.message]).toEqual([201, undefined])
      return body
    },
    /** Returns the paths of the files of a component, as anonymous callers get them. */
    paths: async (identifier = 'card'): Promise<{ js: string; css: string }> =>
      (await testTenant.anonymous.get('/static')).body.find(
        (one: { identifier: string }) => one.identifier === identifier,
      ),
    fetch: (path: string, headers: Record<string, string> = {}) =>
      callApi('GET', `${testTenant.origin}${path}`, { headers }),
  }
}

/** Folds `"xx"` into a text of twice the length at every step, at compile time. */
export const constantFoldingBomb = (steps: number) =>
  `enum E { a0 = 'xx'${Array.from({ length: steps }, (_, n) => `, a${n + 1} = a${n} + a${n}`).join('')} }`
