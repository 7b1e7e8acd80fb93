import { Button, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { FieldForm, type FormField } from '../fields/field-form'
import { operatorApi, refetchOperator } from './operator-api'
import { SecretLink } from './secret-link'

const FORM_ID = 'tenant-support'

const supportFields: FormField[] = [
  {
    ...{ key: 'reason', type: 'string', required: true, title: 'Reason', max: 500 },
    description: 'Admins of the tenant see it in their events.',
  },
]

/** A form for a link by which the operator signs in to a tenant, and then that link. */
export function TenantSupport({ id }: { id: string }) {
  const open = useMutation({
    mutationFn: async (reason: string) => {
      const answer = await operatorApi.POST('/operator/tenants/{id}/support', {
        params: { path: { id } },
        body: { reason },
      })
      return answer.data?.link ?? ''
    },
    onSuccess: refetchOperator,
  })
  return (
    <section aria-label="Support">
      <Title order={3} mb="xs">
        Open for support
      </Title>
      {open.data ? (
        <SecretLink
          text="This link signs you in once, within an hour, as an administrator of your own. The session ends within two hours."
          label="Support link"
          link={open.data}
        />
      ) : (
        <>
          <FieldForm
            id={FORM_ID}
            fields={supportFields}
            before={{}}
            draftKey={`operator-support-${id}`}
            save={(_changes, { reason }) => open.mutateAsync(String(reason ?? ''))}
            onSaved={() => {}}
          />
          <Button mt="xs" type="submit" form={FORM_ID} variant="default">
            Create support link
          </Button>
        </>
      )}
    </section>
  )
}
