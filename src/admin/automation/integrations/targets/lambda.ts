import { LambdaInput } from './choice-inputs'
import type { TargetKind } from './target-kind'

export const lambda: TargetKind<'lambda'> = {
  label: 'run a lambda',
  fields: [{ key: 'lambdaId', title: 'Lambda', type: 'string', required: true, Input: LambdaInput }],
  describe: ({ lambdaId }, findName) => `run ${findName(lambdaId)}`,
}
