/** The mapping files and code modules of the service under test. */
export const files: Readonly<Record<string, string>> = {
  // Records of the victim, and of the user who holds up.
  "notes.yaml": `
name: notes
model: Note
fields:
  id: { type: Int, id: true }
  text: { type: String, length: 1000000 }
  user_id: { type: Int, index: true }
triggers: [on_create, on_update]
ownerColumn: user_id
`,
  // None of its events can be presented.
  "poisons.yaml": `
name: poisons
model: Poison
module: poisons.mjs
fields:
  id: { type: Int, id: true }
  user_id: { type: Int }
triggers: [on_create]
ownerColumn: user_id
`,
  "poisons.mjs": `export function transform() { throw new Error("This resource is poison."); }\n`,
  // Its rows may be larger than a message.
  "texts.yaml": `
name: texts
model: Text
fields:
  id: { type: Int, id: true }
  text: { type: String }
  user_id: { type: Int }
triggers: [on_create]
ownerColumn: user_id
`,
  // Its records cannot be presented while the table of the places is locked.
  "visits.yaml": `
name: visits
model: Visit
fields:
  id: { type: Int, id: true }
  place_id: { type: Int, as: place, references: places.id }
  user_id: { type: Int }
triggers: [on_create]
transform: { id: id, place: place.name }
ownerColumn: user_id
baseQuery:
  include: { place: true }
`,
  "places.yaml": `
name: places
model: Place
fields:
  id: { type: Int, id: true }
  name: { type: String }
triggers: [on_delete]
`,
};

/** Everything else has its default. */
export const service = `
webhooks:
  allowedNetworks: [127.0.0.0/8]
`;
