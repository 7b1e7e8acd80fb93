import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { meQuery } from '../api/queries'
import type { Blueprint, Field } from '../api/schema'

/** Returns whether the user may write a field; computed ones nobody writes. The server decides in the end. */
export function useFieldAccess(blueprint: Pick<Blueprint, 'computed'> | undefined): (field: Field) => boolean {
  const { data: me } = useQuery(meQuery)
  const computed = blueprint?.computed
  return useMemo(() => {
    const roles = me?.roles ?? []
    return ({ key, writeRoles }: Field) =>
      !(computed && key in computed) &&
      (!writeRoles?.length || roles.includes('admin') || writeRoles.some((role) => roles.includes(role)))
  }, [computed, me?.roles])
}
