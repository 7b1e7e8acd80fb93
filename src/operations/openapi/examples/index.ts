import { accountExamples } from './accounts'
import { aiExamples } from './ai'
import { automationExamples } from './automation'
import { dataExamples } from './data'
import { operationExamples } from './operations'
import { paymentExamples } from './payments'

export { standIns } from './stand-ins'

/**
 * Examples of bodies and responses, by the names of their schemas. Where a body has none of its own, it is named after
 * the operation: `CallMcpInput`, `CallMcpResult`.
 */
export const examples: Record<string, unknown> = {
  ...accountExamples,
  ...dataExamples,
  ...automationExamples,
  ...paymentExamples,
  ...aiExamples,
  ...operationExamples,
  Success: { success: true },
}
