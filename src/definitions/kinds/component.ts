import * as components from '../../content/components'
import { compileContent } from '../../content/components'
import { NewComponent } from '../../content/shapes'
import { defineKind } from './definition-kind'

/** A component. Its name is its identifier unless another one is given. */
export const component = defineKind({
  folder: 'components',
  nameKey: 'identifier',
  source: { key: 'content', extension: 'tsx' },
  shape: NewComponent,
  defaults: { description: '', requiredProps: [] },
  prepare: ({ componentName, ...definition }, { name }) => ({
    ...definition,
    ...(componentName !== name && { componentName }),
  }),
  list: components.list,
  get: components.get,
  toStored: ({ _id, identifier, componentName, description, content, requiredProps }) => ({
    id: _id,
    name: identifier,
    definition: { description, content, requiredProps, ...(componentName !== identifier && { componentName }) },
  }),
  async validate(ctx, { content }, { before }) {
    if (content !== before?.stored.content) await compileContent(ctx, content)
  },
  create: components.create,
  change: (ctx, id, { identifier, componentName = identifier, ...input }, { ifMatch }) =>
    components.update(ctx, id, { description: '', requiredProps: [], ...input, componentName }, { ifMatch }),
  remove: (ctx, id, { ifMatch }) => components.remove(ctx, id, { ifMatch }),
})
