import { Progress, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { queryClient } from '../api/queries'
import { showNotice } from '../ui/notices'
import classes from './design.module.css'
import { alterationQuery } from './design-queries'

/** How far the entities of a blueprint are prepared for a change, while that goes on. */
export function AlterationProgress({ blueprint, isSaving }: { blueprint: string; isSaving: boolean }) {
  const { data } = useQuery(alterationQuery(blueprint, isSaving))
  const wasPreparing = useRef(false)
  const isPreparing = data?.state === 'preparing'
  useEffect(() => {
    if (wasPreparing.current && !isPreparing && !isSaving) {
      showNotice(data?.state === 'failed' ? 'The change was given up.' : 'All entities are changed.')
      void queryClient.invalidateQueries({ queryKey: ['blueprints', blueprint] })
      void queryClient.invalidateQueries({ queryKey: ['entities', blueprint] })
    }
    wasPreparing.current = isPreparing
  }, [blueprint, isPreparing, isSaving, data])
  if (data?.state === 'failed')
    return (
      <Text className={classes.alteration} role="alert" size="sm">
        The last change was given up. {data.problem?.message}
      </Text>
    )
  if (!isPreparing) return null
  const percent = Math.round((100 * data.done) / Math.max(1, data.total))
  return (
    <div className={classes.alteration}>
      <Text size="sm" role="status">
        {`${data.done.toLocaleString()} of ${data.total.toLocaleString()} entities are prepared for the change (${percent} %).`}
      </Text>
      <Progress value={percent} aria-label="Progress of the change" size="sm" transitionDuration={0} />
    </div>
  )
}
