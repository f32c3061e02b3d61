/**
 * The resources of the benchmark: one separate table, one with a relation, and one table as two
 * resources, with a rule of access and without.
 */
const task = (name: string, model: string, access: string): string => `
name: ${name}
model: ${model}
fields:
  id: { type: Int, id: true }
  title: { type: String, length: 200 }
  project_id: { type: Int, references: projects.id, as: project, index: true }
  created_at: { type: DateTime, default: now }
triggers: [on_delete]
createRules:
  title: required|string|max:200
  project_id: required|integer|exists:projects,id
access: ${access}
`;

const teamRule = "{ project: { members: { some: { user_id: $user.id } } } }";

export const mappingFiles: Readonly<Record<string, string>> = {
  "notes.yaml": `
name: notes
model: Note
fields:
  id: { type: Int, id: true }
  title: { type: String, length: 200 }
  body: { type: String, optional: true }
  user_id: { type: Int, index: true }
  created_at: { type: DateTime, default: now }
  updated_at: { type: DateTime, updatedAt: true }
triggers: [on_create]
ownerColumn: user_id
searchableColumns: [title]
`,
  "customers.yaml": `
name: customers
model: Customer
fields:
  id: { type: Int, id: true }
  name: { type: String, length: 120 }
triggers: [on_delete]
access: { read: everyone }
`,
  "orders.yaml": `
name: orders
model: Order
fields:
  id: { type: Int, id: true }
  reference: { type: String, length: 40, unique: true }
  amount: { type: Decimal, precision: 12, scale: 2 }
  customer_id: { type: Int, references: customers.id, as: customer }
  user_id: { type: Int, index: true }
  created_at: { type: DateTime, default: now }
triggers: [on_create]
transform:
  id: id
  reference: reference
  amount: amount
  customer: { id: customer.id, name: customer.name }
  created_at: created_at
createRules:
  reference: required|string|max:40|unique:orders,reference
  amount: required|numeric|min:0
  customer_id: required|integer|exists:customers,id
ownerColumn: user_id
baseQuery:
  include: { customer: true }
`,
  "projects.yaml": `
name: projects
model: Project
fields:
  id: { type: Int, id: true }
  name: { type: String, length: 80 }
triggers: [on_delete]
access: { read: everyone }
`,
  "members.yaml": `
name: members
model: Member
fields:
  id: { type: Int, id: true }
  project_id: { type: Int, references: projects.id, as: project, index: true }
  user_id: { type: Int, index: true }
triggers: [on_delete]
access: { read: everyone }
`,
  // Records for the members of a project, and the same records for all users.
  "tasks.yaml": task("tasks", "Task", `{ read: ${teamRule}, create: ${teamRule} }`),
  "open_tasks.yaml": task("open_tasks", "OpenTask", "{ read: everyone, create: everyone }"),
};

export const serviceSettings = `
webhooks:
  allowedNetworks: [127.0.0.0/8]
`;

/**
 * SQL of the records. $1 is the user's id, $2 the number of records of each resource. The user is a
 * member of all 100 projects, like ten others.
 */
export const seedTexts: readonly string[] = [
  `INSERT INTO notes (title, body, user_id)
    SELECT 'Note ' || number, repeat('Lorem ipsum dolor. ', 10), $1 FROM generate_series(1, $2::int) AS number`,
  `INSERT INTO customers (name) SELECT 'Customer ' || number FROM generate_series(1, 1000) AS number WHERE $1::int + $2::int > 0`,
  `INSERT INTO orders (reference, amount, customer_id, user_id)
    SELECT 'R-' || number, number * 1.25, 1 + number % 1000, $1 FROM generate_series(1, $2::int) AS number`,
  `INSERT INTO projects (name) SELECT 'Project ' || number FROM generate_series(1, 100) AS number WHERE $1::int + $2::int > 0`,
  `INSERT INTO members (project_id, user_id)
    SELECT project, $1::int + member FROM generate_series(1, 100) AS project, generate_series(0, 10) AS member WHERE $2::int > 0`,
  ...["tasks", "open_tasks"].map(
    (table) => `INSERT INTO ${table} (title, project_id)
    SELECT 'Task ' || number, 1 + number % 100 FROM generate_series(1, $2::int) AS number WHERE $1::int > 0`,
  ),
];
