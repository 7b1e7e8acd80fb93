import { Button } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { CreatedTenant } from '../api/schema'
import { FieldForm, type FormField } from '../fields/field-form'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { operatorApi, refetchOperator } from './operator-api'
import { SecretLink } from './secret-link'

const FORM_ID = 'new-tenant'

const fields: FormField[] = [
  {
    ...{ key: 'id', type: 'string', required: true, title: 'Id', max: 63 },
    description: 'Lower-case letters, digits and hyphens. It cannot be changed later.',
  },
  {
    ...{ key: 'name', type: 'string', required: false, title: 'Product', max: 60 },
    description: 'The name in mails and on pages, such as Harbor Desk.',
  },
  {
    ...{ key: 'hosts', type: 'string', multi: true, required: false, title: 'Hosts' },
    description: 'Where the tenant answers, such as acme.example.com. Links in mails lead to the first one.',
  },
]

/** A form for another tenant, and then the link by which its first administrator begins. */
export function NewTenantPanel() {
  const navigate = useNavigate()
  const [created, setCreated] = useState<CreatedTenant>()
  const close = () => navigate({ to: '/operator/tenants', search: true as never })
  const save = async (_changes: unknown, { id, name, hosts }: Record<string, unknown>) => {
    const body = {
      id: String(id ?? ''),
      ...(name ? { name: String(name) } : {}),
      ...(Array.isArray(hosts) && { hosts: hosts.map(String) }),
    }
    return (await operatorApi.POST('/operator/tenants', { body })).data as CreatedTenant
  }
  const finish = async (tenant: CreatedTenant) => {
    setCreated(tenant)
    await refetchOperator()
  }
  if (created)
    return (
      <SidePanel title={created.id} onClose={close} footer={<Button onClick={close}>Done</Button>}>
        <SecretLink
          text="Give this link to the tenant's first administrator. It works once, within 24 hours."
          label="Set-up link"
          link={created.setUpLink ?? ''}
        />
      </SidePanel>
    )
  return (
    <SidePanel title="New tenant" onClose={close} footer={<SaveButton form={FORM_ID} label="Create tenant" />}>
      <FieldForm id={FORM_ID} fields={fields} draftKey="operator-tenant" save={save} onSaved={finish} />
    </SidePanel>
  )
}
