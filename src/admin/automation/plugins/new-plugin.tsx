import { Group } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { CreatedPlugin, NewPlugin as NewPluginBody } from '../../api/schema'
import { FieldForm } from '../../fields/field-form'
import { SaveButton } from '../../ui/save-button'
import { Screen } from '../../ui/screen'
import classes from '../workbench.module.css'
import { newPluginFields, toPluginChange } from './plugin-fields'
import { SecretDialog } from './secret-dialog'

const FORM_ID = 'new-plugin'

/** A form that registers a plugin, whose secret is shown once. */
export function NewPlugin() {
  const navigate = useNavigate()
  const [created, setCreated] = useState<CreatedPlugin>()
  const open = async () => {
    await queryClient.invalidateQueries({ queryKey: ['plugins'] })
    await navigate({ to: '/automation/plugins/$id', params: { id: created!._id } })
  }
  return (
    <Screen title="New plugin">
      <div className={classes.main}>
        <div className={classes.form}>
          <FieldForm
            id={FORM_ID}
            fields={newPluginFields}
            draftKey="plugin:new"
            save={(changes) => fetchData(api.POST('/api/plugins', { body: toPluginChange(changes) as NewPluginBody }))}
            onSaved={setCreated}
          />
          <Group mt="md" gap="xs">
            <SaveButton form={FORM_ID} label="Register plugin" />
          </Group>
        </div>
      </div>
      {created && (
        <SecretDialog title="Secret of the plugin" secret={created.secret} onClose={open}>
          The plugin checks by it that events come from here.
        </SecretDialog>
      )}
    </Screen>
  )
}
