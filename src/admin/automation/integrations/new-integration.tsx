import { Group } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import { showNotice } from '../../ui/notices'
import { SaveButton } from '../../ui/save-button'
import { Screen } from '../../ui/screen'
import classes from '../workbench.module.css'
import { IntegrationForm } from './integration-form'
import { targets } from './targets'
import type { TargetName } from './targets/target-kind'
import { triggers } from './triggers'
import type { TriggerName } from './triggers/trigger-kind'

const FORM_ID = 'new-integration'

/** Describes a new integration. The address can say what it begins with. */
export function NewIntegration() {
  const { trigger = '', target = '', lambda } = useSearch({ strict: false }) as Record<string, string>
  const navigate = useNavigate()
  const initial = {
    trigger: trigger in triggers ? (trigger as TriggerName) : undefined,
    target: target in targets ? (target as TargetName) : undefined,
    lambda,
  }
  return (
    <Screen title="New integration">
      <div className={classes.main}>
        <div className={classes.form}>
          <IntegrationForm
            id={FORM_ID}
            draftKey={['integration', 'new', trigger, lambda].filter(Boolean).join(':')}
            initial={initial}
            save={(body) => fetchData(api.POST('/api/integrations', { body }))}
            onSaved={async ({ _id }) => {
              showNotice('Created.')
              await queryClient.invalidateQueries({ queryKey: ['integrations'] })
              await navigate({ to: '/automation/integrations/$id', params: { id: _id } })
            }}
          />
          <Group mt="md" gap="xs">
            <SaveButton form={FORM_ID} label="Create integration" />
          </Group>
        </div>
      </div>
    </Screen>
  )
}
