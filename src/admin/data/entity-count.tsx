import { useQuery } from '@tanstack/react-query'
import { entityEstimateQuery, formatEstimate } from './entity-queries'

/** About how many entities a blueprint has, grouped as the locale writes numbers. */
export function EntityCount({ blueprint }: { blueprint: string }) {
  const { data } = useQuery(entityEstimateQuery(blueprint, {}))
  return data && formatEstimate(data)
}
