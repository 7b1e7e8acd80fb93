import { createConnectionInput } from './choice-inputs'
import type { TargetKind } from './target-kind'

export const http: TargetKind<'http'> = {
  label: 'send a request',
  fields: [
    {
      key: 'sourceId',
      title: 'Connection',
      description: 'It has the address and the secrets. Without one, write the whole address.',
      type: 'string',
      Input: createConnectionInput('http'),
    },
    { key: 'url', title: 'Address', type: 'url', isHidden: (values) => !!values['target/sourceId'] },
    {
      key: 'path',
      title: 'Path',
      description: 'Below the address of the connection.',
      type: 'string',
      isHidden: (values) => !values['target/sourceId'],
    },
    {
      key: 'method',
      title: 'Method',
      type: 'string',
      enum: ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'],
      default: 'POST',
    },
  ],
  describe: ({ sourceId, url, path = '', method = 'POST' }, findName) =>
    `send ${method} to ${sourceId ? `${findName(sourceId)}${path && ` ${path}`}` : url}`,
}
