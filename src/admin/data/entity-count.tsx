import { useQuery } from '@tanstack/react-query'
import { entityCountQuery } from './entity-queries'

/** How many entities a blueprint has, grouped as the locale writes numbers. */
export function EntityCount({ blueprint }: { blueprint: string }) {
  const { data: count } = useQuery(entityCountQuery(blueprint, {}))
  return count?.toLocaleString()
}
