import { Button, Stack, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ExpiryInput, toExpiry } from '../account/expiry-input'
import type { CreatedOperatorToken } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { CodeBlock } from '../ui/code-block'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { operatorApi, refetchOperator } from './operator-api'
import { type OperatorScope, ScopesInput } from './token-scopes'

const FORM_ID = 'new-operator-token'

const fields: FormField[] = [
  {
    ...{ key: 'name', type: 'string', required: true, title: 'Name', max: 100 },
    description: 'Person or program that uses it. Events and log lines show this name.',
  },
  { key: 'scopes', type: 'string', multi: true, required: true, title: 'Scopes', Input: ScopesInput },
  { key: 'expires', type: 'string', required: false, title: 'Expires', Input: ExpiryInput },
]

async function createToken({ name, scopes, expires }: FormValues): Promise<CreatedOperatorToken> {
  const body = {
    name: String(name ?? ''),
    scopes: (scopes ?? []) as OperatorScope[],
    ...(expires !== undefined && { expires: toExpiry(expires) }),
  }
  return (await operatorApi.POST('/operator/tokens', { body })).data as CreatedOperatorToken
}

/** A form for another token of the operator, and then that token, which is shown only once. */
export function NewTokenPanel() {
  const navigate = useNavigate()
  const [created, setCreated] = useState<CreatedOperatorToken>()
  const close = () => navigate({ to: '/operator/tokens' })
  const finish = async (token: CreatedOperatorToken) => {
    setCreated(token)
    await refetchOperator()
  }
  if (created)
    return (
      <SidePanel title={created.name} onClose={close} footer={<Button onClick={close}>Done</Button>}>
        <Stack gap="xs">
          <Text size="sm">Copy the token now. It is shown only once.</Text>
          <CodeBlock label="token" code={created.token} />
        </Stack>
      </SidePanel>
    )
  return (
    <SidePanel title="New token" onClose={close} footer={<SaveButton form={FORM_ID} label="Create token" />}>
      <FieldForm
        id={FORM_ID}
        fields={fields}
        draftKey="operator-token"
        save={(_changes, values) => createToken(values)}
        onSaved={finish}
      />
    </SidePanel>
  )
}
