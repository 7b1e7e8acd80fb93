import { useQuery } from '@tanstack/react-query'
import type { Integration } from '../../api/schema'
import { connectionsQuery } from '../connections/connection-queries'
import { lambdaChoicesQuery } from '../lambdas/lambda-queries'
import { describeTarget } from './targets'
import { describeTrigger } from './triggers'

/** What an integration does, as a sentence: when something happens, then something is done. */
export function IntegrationSentence({
  integration: { trigger, target },
}: {
  integration: Pick<Integration, 'trigger' | 'target'>
}) {
  const lambdas = useQuery(lambdaChoicesQuery)
  const connections = useQuery(connectionsQuery)
  const findName = (id: string) =>
    lambdas.data?.find(({ value }) => value === id)?.label ??
    connections.data?.find(({ _id }) => _id === id)?.name ??
    id.slice(0, 8)
  return (
    <span>
      {describeTrigger(trigger)}, {describeTarget(target, findName)}
    </span>
  )
}
